// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// stopped is a process that notes that it was stopped.
type stopped struct {
	executor.Process
	yes bool
}

func (s *stopped) Stop() { s.yes = true }

// TestIdleHelpers: a helper ends when it was not used for a while, or makes room for another one,
// but not while a client has a file open in it.
func TestIdleHelpers(t *testing.T) {
	processes := map[string]*stopped{}
	l := &fileLane{owners: map[string]*fileProcess{}}
	use := func(name string) *fileProcess {
		r, w := io.Pipe()
		processes[name] = new(stopped)
		h := &fileProcess{key: name, process: processes[name], stream: wire.Lines(r, w),
			used: time.Now().Add(-helperIdle)}
		l.helpers = append(l.helpers, h)
		return h
	}
	ended := func() (names []string) {
		for name, p := range processes {
			if p.yes {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	use("old")
	l.owners["h"] = use("open")
	use("new").used = time.Now()
	l.stopIdle()
	if got := ended(); !slices.Equal(got, []string{"old"}) || len(l.helpers) != 2 {
		t.Errorf("%q ended, %d are left", got, len(l.helpers))
	}
	l.drop(l.owners["h"])
	if got := ended(); !slices.Equal(got, []string{"old", "open"}) || len(l.owners) != 0 {
		t.Errorf("%q ended, handles: %v", got, l.owners)
	}
	for _, name := range []string{"a", "b", "c"} {
		l.owners[name] = use(name)
	}
	l.owners["n"] = l.helpers[0]
	if _, err := l.startHelper("x", &executor.Spec{Policy: sandbox.ReadOnly()}, nil); err == nil ||
		!strings.Contains(err.Error(), "limit of sandboxes for files (4)") {
		t.Errorf("%v", err)
	}
}
