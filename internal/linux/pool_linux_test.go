// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestShare: a Host gives its launcher to the next one, unless a process of it may be there still, and what
// it has learned about the machine to none.
func TestShare(t *testing.T) {
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	from := new(Host)
	another := func() *Host {
		h := new(Host)
		h.Share(from)
		return h
	}
	for name, test := range map[string]struct {
		left func(*Host)
		idle int
	}{
		"all ended":                  {func(*Host) {}, 1},
		"a child is not closed":      {func(h *Host) { h.children.Add(1) }, 0},
		"a tree could not be killed": {func(h *Host) { h.outgrown.Store(true) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := another()
			if err := h.namespaces(); err != nil { // it starts the threads
				t.Fatal(err)
			}
			own, err := h.onDisk()
			if err != nil {
				t.Fatal(err)
			}
			h.lacking = map[string]*sandbox.UnsupportedError{plan.LevelNative: {Need: "x"}}
			test.left(h)
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if n := len(from.own.idle); n != test.idle {
				t.Errorf("%d launchers wait, want %d", n, test.idle)
			}
			next := another()
			if next.lacks(plan.LevelNative) != nil {
				t.Error("the next Host does not look itself")
			}
			if l := next.launcher(); (l == h.taken) != (test.idle == 1) {
				t.Errorf("the next Host has the same launcher: %v", l == h.taken)
			}
			more, err := next.onDisk()
			if err != nil || more.kept != own.kept || more.tmp.Path == own.tmp.Path {
				t.Errorf("%v, %+v, %+v", err, more, own)
			}
			next.outgrown.Store(true) // ends the launcher
			if err := next.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	moved := another()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if own, err := moved.onDisk(); err != nil || !own.alone || own.kept == from.own.kept {
		t.Errorf("another state directory: %v, %+v", err, own)
	}
	if err := moved.Close(); err != nil {
		t.Error(err)
	}
	if err := from.Close(); err != nil || len(from.own.idle) != 0 {
		t.Errorf("%v, %d launchers", err, len(from.own.idle))
	}
	late := another()
	if err := late.namespaces(); err != nil {
		t.Error(err)
	}
	if err := late.Close(); err != nil || len(from.own.idle) != 0 {
		t.Errorf("%v, %d launchers wait for nothing", err, len(from.own.idle))
	}
}
