// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Stage holds what commands changed in a copy of their writable directories, until it is applied to the
// host's files or discarded. The embedded methods Info, Changes and Diff are those of [executor.Stage], whose
// Apply and Discard take options. A Stage is usable after its Runner was closed.
type Stage struct{ executor.Stage }

// Apply makes the changes at and below paths real, which are absolute or relative to the workspace; no paths
// mean all. With an *executor.ConflictError nothing was applied. The first result is never nil. After any
// other error it can be called again, and then completes.
func (s *Stage) Apply(ctx context.Context, paths ...string) (*executor.Applied, error) {
	return s.Stage.Apply(ctx, executor.ApplyOptions{Paths: paths})
}

// Discard forgets the changes at and below paths; no paths mean all, and the stage with them. The error is an
// executor.ErrStageInUse while a command uses the stage.
func (s *Stage) Discard(ctx context.Context, paths ...string) error {
	return s.Stage.Discard(ctx, false, paths...)
}

// Stages lists the stages of this user, oldest first. The error says which cannot be read, beside the others,
// or is [ErrNoSandbox] where the Executor has no stages.
func (r *Runner) Stages(ctx context.Context) ([]executor.StageInfo, error) {
	stager, leave, err := r.stager(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return stager.Stages(ctx)
}

// Stage returns the stage with an id, a prefix of one of at least 4 characters, or the name of a stage of the
// workspace, which is an absolute directory in it; with an empty id the newest stage of the workspace. The
// error is an executor.ErrNoStage where there is none, and [ErrNoSandbox] where the Executor has no stages.
func (r *Runner) Stage(ctx context.Context, workspace, id string) (*Stage, error) {
	stager, leave, err := r.stager(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	s, err := stager.OpenStage(ctx, workspace, id)
	if err != nil {
		return nil, err
	}
	return &Stage{s}, nil
}

// stager returns the executor that has stages, until leave.
func (r *Runner) stager(ctx context.Context) (s executor.Stager, leave func(), err error) {
	if _, leave, err = r.enter(ctx); err != nil {
		return nil, nil, err
	}
	s, ok := executor.As[executor.Stager](r.executor())
	if !ok {
		leave()
		return nil, nil, noSandbox(noStages)
	}
	return s, leave, nil
}

// noStages is the error for executors without stages.
var noStages = &sandbox.UnsupportedError{Need: "a stage", Have: "this executor has none",
	Hint: "run it on Linux, or without a stage"}

// Changes returns the first executor.MaxChanges of the changes that the command's stage holds, by root and
// path; nil where it had no stage. Stage.Total counts all.
func (r *Result) Changes() []executor.Change {
	if r.Stage == nil {
		return nil
	}
	return r.Stage.Changes
}

// errStaged is why a rule does not lead a command outside of the sandbox.
var errStaged = errors.New("it has a stage, which only the sandbox gives it")

// checkStage refuses what would change the host's files in a run that has a stage.
func (x *execution) checkStage() error {
	switch {
	case x.cmd.Stage == nil:
	case x.cmd.Unsandboxed:
		return &CmdError{Field: "Stage",
			Reason: "a staged run cannot leave the sandbox, and Unsandboxed is set; leave one of them out"}
	case x.patch != nil:
		return &CmdError{Field: "Stage",
			Reason: "a patch changes the host's files themselves and cannot be staged; apply it " +
				"without a stage, or change the files with commands"}
	default:
		if _, ok := executor.As[executor.Stager](x.runner.executor()); !ok {
			return noSandbox(noStages)
		}
		return x.stageable(x.policy)
	}
	return nil
}

// stageable returns an error if a process with a policy would not be confined to a stage that it has.
func (x *execution) stageable(p sandbox.Policy) error {
	if x.cmd.Stage == nil || p.Mode() == sandbox.Managed {
		return nil
	}
	return &executor.StageError{ID: x.cmd.Stage.ID,
		Why: "a stage needs a sandbox, and the policy " + p.Name() + " builds none",
		Fix: "use another policy, such as workspace-write, or run it without a stage"}
}

// stage is the stage of the next attempt: that of the attempt before it, if there is one.
func (x *execution) stage() *executor.Staging {
	if x.first == nil || x.first.Stage == nil {
		return x.cmd.Stage
	}
	again := *x.cmd.Stage
	again.ID = x.first.Stage.ID
	return &again
}
