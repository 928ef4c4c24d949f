// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestCloseWaits checks that every call of Close returns when everything was freed.
func TestCloseWaits(t *testing.T) {
	testenv.NeedUserNS(t)
	for range 20 {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
		private := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport", "tmp", "*")
		var e Executor
		wait(t, start(t, &e, newSpec(sandbox.ReadOnly(), "true")))
		if made, err := filepath.Glob(private); len(made) != 1 {
			t.Fatalf("%q were made, %v", made, err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if left, err := filepath.Glob(private); len(left) != 0 || err != nil {
					t.Errorf("after Close %q are left, %v", left, err)
				}
			})
		}
		all.Wait()
	}
}

// TestCloseCancels checks that Close cancels a start that waits for Spec.Ready.
func TestCloseCancels(t *testing.T) {
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	e := newExecutor(t)
	spec := newSpec(sandbox.ReadOnly(), "true")
	spec.Ready = make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), noneAfter)
	defer cancel()
	started := make(chan error, 1)
	go func() {
		_, err := e.Start(ctx, spec)
		started <- err
	}()
	private := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport", "tmp", "*")
	for made, _ := filepath.Glob(private); len(made) == 0; made, _ = filepath.Glob(private) {
		runtime.Gosched()
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := <-started; !errors.Is(err, ErrClosed) {
		t.Errorf("the start returned %v", err)
	}
}
