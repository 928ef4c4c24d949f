// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMappedID: an id is told as the user namespace of the one who asks has it.
func TestMappedID(t *testing.T) {
	for _, c := range []struct {
		name, table string
		id, want    uint32
	}{
		{"one user", "      1000       1000          1\n", 1000, 1000},
		{"as root", "         0       1000          1\n", 1000, 0},
		{"a range", "0 1000 1\n1 100000 65536\n", 100041, 42},
		{"the whole", "0 0 4294967295\n", 1000, 1000},
		{"not there", "0 1000 1\n", 1001, 65534},
		{"no table", "", 1000, 65534},
		{"no numbers", "a b c\n", 1000, 65534},
	} {
		if got := mappedID(c.table, c.id); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestClients: the latest connections are known, and no more than so many.
func TestClients(t *testing.T) {
	var all clients
	for i := range uint32(maxConnected + 10) {
		all.add(i, client{ids: []string{strconv.Itoa(int(i))}})
	}
	all.add(20, client{ids: []string{"again"}})
	for _, c := range []struct {
		ino  uint32
		want []string
	}{
		{0, nil}, {9, nil}, {10, []string{"10"}}, {20, []string{"again"}},
		{maxConnected + 9, []string{"1033"}},
	} {
		if got, ok := all.find(c.ino); ok != (c.want != nil) || !slices.Equal(got.ids, c.want) {
			t.Errorf("%d: %v, %v, want %v", c.ino, got.ids, ok, c.want)
		}
	}
	if len(all.of) != maxConnected || len(all.order) != maxConnected {
		t.Errorf("%d and %d are kept", len(all.of), len(all.order))
	}
}

// TestTellProcessGone: the number of a client that has ended may be that of a process outside by now.
// Without the comparison the command gets a descriptor of that.
func TestTellProcessGone(t *testing.T) {
	own := selfRequest(t)
	self := client{ids: own.processes(), space: own.processSpace()}
	for _, c := range []struct {
		name string
		by   client
	}{
		{"another namespace", client{ids: self.ids, space: self.space + 1}},
		{"other numbers", client{ids: append(slices.Clone(self.ids), "7"), space: self.space}},
		{"ended", client{ids: []string{"4194305"}, space: self.space}},
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
	if user, ok := ownerOf(int(own.Fd())); ok {
		unix.Close(user)
		t.Error("the namespace of this process itself was taken for a sandbox's")
	}
}
