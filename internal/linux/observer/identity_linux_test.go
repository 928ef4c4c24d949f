// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// TestTellProcessGone: the number of a client that has ended may be that of a process outside by now.
// Without the comparison the command gets a descriptor of that.
func TestTellProcessGone(t *testing.T) {
	own := selfRequest(t)
	self := tasks.Client{IDs: own.processes(), Space: own.processSpace()}
	for _, c := range []struct {
		name string
		by   tasks.Client
	}{
		{"another namespace", tasks.Client{IDs: self.IDs, Space: self.Space + 1}},
		{"other numbers", tasks.Client{IDs: append(slices.Clone(self.IDs), "7"), Space: self.Space}},
		{"ended", tasks.Client{IDs: []string{"4194305"}, Space: self.Space}},
	} {
		if errno := endedRequest(t).tellProcess(c.by); errno != unix.ESRCH {
			t.Errorf("%s: %v", c.name, errno)
		}
	}
	if errno := endedRequest(t).tellProcess(self); errno == unix.ESRCH { // it would be handed in
		t.Error("a client that is there is not told")
	}
}

// TestForeignUserSpace: no task is made in a user namespace that is not a direct one of this process's.
func TestForeignUserSpace(t *testing.T) {
	own, err := os.Open("/proc/self/ns/pid")
	must(t, err)
	defer own.Close()
	if user, ok := tasks.OwnerOf(int(own.Fd())); ok {
		unix.Close(user)
		t.Error("the namespace of this process itself was taken for a sandbox's")
	}
}
