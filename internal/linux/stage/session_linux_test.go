// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/apply"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestDropLast: a command of a shared sandbox that does not start, and goes last, leaves what others have staged.
func TestDropLast(t *testing.T) {
	s, dir := newStore(t), t.TempDir()
	policy := sandbox.WorkspaceWrite(dir).Bind(sandbox.Places{Dir: dir})
	st, spec := Session{Shared: true}, &executor.Spec{Dir: dir, Policy: policy, Stage: &executor.Staging{}}
	must(t, st.open(s.State, spec, spec.Stage))
	st.users = 2
	id, err := apply.Identify(dir)
	must(t, err)
	must(t, st.stage.Begin(PolicyOf(policy, dir, ""), []Root{{Path: dir, ID: id}}, time.Now(), true))
	must(t, st.Take(nil, new(plan.Plan)))
	must(t, os.WriteFile(filepath.Join(st.stage.Upper(0), "made"), nil, 0o600))
	left, err := st.Finish()
	if err != nil || left.Total != 1 {
		t.Fatalf("%+v, %v", left, err)
	}
	st.Drop(false)
	again, err := s.Open(dir, left.ID)
	must(t, err)
	if _, err := os.Stat(filepath.Join(again.Upper(0), "made")); err != nil {
		t.Error(err)
	}
	must(t, again.Lock()) // nobody has it
	again.Unlock()
}
