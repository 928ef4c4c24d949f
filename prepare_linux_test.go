// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestPrepare: a Runner that was prepared runs as any other, whatever comes of it, and
// one that never runs leaves nothing.
func TestPrepare(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	run := func(t *testing.T, r *Runner) {
		t.Helper()
		c := Command("/bin/sh", "-c", "echo x >$PWD/x; cat x")
		c.Dir = t.TempDir()
		if res, err := r.Run(t.Context(), c); err != nil || res.Stdout.String() != "x\n" {
			t.Errorf("%+v, %v", res, err)
		}
	}
	for _, tt := range []struct {
		name   string
		policy sandbox.Policy
		use    func(t *testing.T, r *Runner)
	}{
		{"run", sandbox.WorkspaceWrite(), run},
		{"network", sandbox.WorkspaceWrite().WithNetwork(sandbox.NetworkHost), run},
		{"full access", sandbox.FullAccess(), run},
		{"not run", sandbox.WorkspaceWrite(), func(*testing.T, *Runner) {}},
		{"refused", sandbox.WorkspaceWrite(), func(t *testing.T, r *Runner) {
			if _, err := r.Run(t.Context(), Command("/nowhere/at/all")); err == nil {
				t.Error("it ran")
			}
		}},
		{"twice", sandbox.WorkspaceWrite(), func(t *testing.T, r *Runner) {
			r.Prepare()
			run(t, r)
			r.Prepare()
			run(t, r)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := t.TempDir()
			t.Setenv("XDG_STATE_HOME", state)
			before := remaining(t)
			r := &Runner{Policy: tt.policy}
			r.Prepare()
			tt.use(t, r)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			r.Prepare() // nothing
			if _, err := r.Run(t.Context(), Command("true")); !errors.Is(err, ErrClosed) {
				t.Errorf("a closed Runner says %v", err)
			}
			fewer := func(now remains) bool { // what was there may have been on its way out
				return now.descriptors <= before.descriptors && now.goroutines <= before.goroutines && now.children <= before.children
			}
			if !settle(t, func() bool { return fewer(remaining(t)) }) {
				t.Errorf("%+v is left, and there was %+v", remaining(t), before)
			}
			if left, err := os.ReadDir(filepath.Join(state, "sallyport", "tmp")); len(left) > 0 || err != nil && !os.IsNotExist(err) {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	}
	var elsewhere Runner
	elsewhere.Executor = &puppetExecutor{}
	elsewhere.Prepare()
	if elsewhere.own != nil {
		t.Error("an executor was made beside the caller's")
	}
}
