// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestUpdate: a command gets the policy and the directory that count when it begins, and keeps
// them, also for the question about it and for its second attempt.
func TestUpdate(t *testing.T) {
	var got []string
	runs := 0
	fail := deniedOnce(&runs, sandbox.Notified)
	r, _ := fakeRunner(nil, func(spec *executor.Spec, p *fakeProcess) {
		got = append(got, spec.Policy.LevelAt(spec.Dir+"/x").String()+" "+spec.Dir)
		fail(spec, p)
	})
	defer r.Close()
	r.Policy, r.Approval = sandbox.WorkspaceWrite("."), approval.OnRequest
	r.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		r.Update(sandbox.ReadOnly(), "/later")
		return approval.Decision{Answer: approval.ApprovedForSession}, nil
	})
	run := func(dir string, want ...string) {
		t.Helper()
		got, runs = nil, 0
		if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: dir}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, attempts in %q, want %q", err, got, want)
		}
	}
	r.Update(sandbox.WorkspaceWrite("."), "/first")
	run("", "write /first", "write /first")
	run("/own", "read /own", "read /own")
	run("", "read /later", "read /later")
	run("", "read /later") // what was approved for the session is given from the start
	r.Update(sandbox.WorkspaceWrite("."), "/first")
	run("", "write /first")
}
