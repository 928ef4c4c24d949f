// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestAnother: each Executor has a /tmp of its own, empty at first and removed with it, and the end of one is
// nothing to the commands of others.
func TestAnother(t *testing.T) {
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	first := newExecutor(t)
	private := func() int {
		made, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport", "tmp", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(made)
	}
	long := first.Another()
	spec := newSpec(sandbox.WorkspaceWrite(), "sh", "-c", "echo x >/tmp/note; read x; cat /tmp/note")
	spec.PipeStdin, spec.Retain.Memory = true, 100
	waits := start(t, long, spec)
	for range 2 { // the second one with the threads of the first
		e := first.Another()
		const script = "test ! -e /tmp/note && echo y >/tmp/note; sleep 1000 & echo z"
		if exit := wait(t, start(t, e, newSpec(sandbox.WorkspaceWrite(), "sh", "-c",
			script))); exit.Code != 0 || len(exit.Survivors) != 1 || private() != 2 {
			t.Errorf("%+v, %d directories", exit, private())
		}
		if err := e.Close(); err != nil || private() != 1 {
			t.Errorf("%v, %d directories", err, private())
		}
	}
	if _, err := waits.Write([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	exit := wait(t, waits)
	if got, err := waits.Output().Read(t.Context(), 0); exit.Code != 0 || string(got.Data) != "x\n" {
		t.Errorf("%+v, %q, %v", exit, got.Data, err)
	}
	if err := long.Close(); err != nil || private() != 0 {
		t.Errorf("%v, %d directories", err, private())
	}
	if _, err := long.Start(t.Context(), newSpec(sandbox.ReadOnly(), "true")); err == nil {
		t.Error("it starts after its end")
	}
	// What is closed before the one that it comes from, or after it, ends.
	late := first.Another()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if exit := wait(t, start(t, late, newSpec(sandbox.ReadOnly(), "true"))); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
	if err := late.Close(); err != nil || private() != 0 {
		t.Errorf("%v, %d directories", err, private())
	}
}
