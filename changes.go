// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/patch"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A patching is a command that applies a patch. This process does that, to the files that were judged: no
// program is started.
type patching struct {
	text  string
	patch *patch.Patch
	dir   string
	names []string         // of its files, without links
	made  executor.Writing // nil where no sandbox was planned
	says  string           // before an error
	err   error            // why it cannot be applied; nothing else counts then
}

// errEmptyPatch is what agents know for a call without changes.
var errEmptyPatch = errors.New("patch rejected: empty patch")

// patchName is the program of a patch in records of runs.
const patchName = "apply_patch"

// patching returns the patch that the command applies, or nil.
func (x *execution) patching() (*patching, error) {
	call, says := &patch.Call{Text: x.cmd.Patch}, ""
	_, performs := executor.As[performer](x.runner.executor())
	switch performs = performs && x.host.Local; {
	case x.cmd.Patch != "" && !performs:
		return nil, &CmdError{Field: "Patch",
			Reason: "patches are applied on this machine only, and the executor is another one"}
	case !performs:
		return nil, nil //nolint:nilnil // an ordinary command
	case x.cmd.Patch == "":
		says = "apply_patch verification failed: "
		var err error
		if call, err = patch.CallOf(x.args); err != nil {
			return &patching{says: says, err: err}, nil //nolint:nilerr // it is told as the command's
		} else if call == nil {
			return nil, nil //nolint:nilnil // an ordinary command
		}
	}
	p := &patching{text: call.Text, says: says, dir: call.In(x.dir)}
	switch p.patch, p.err = patch.Parse(call.Text); {
	case p.err != nil:
	case len(p.patch.Hunks) == 0 && x.cmd.Patch == "":
		p.says, p.err = "", errEmptyPatch
	default:
		p.names, p.err = p.patch.Names(p.dir)
	}
	return p, nil //nolint:nilerr // likewise
}

// authorizePatch is authorize for a patch: rules play no part. Files that the sandbox of a command would
// close need an approval, and where everything is asked about all do.
func (x *execution) authorizePatch(ctx context.Context) error {
	x.asIs.policy, x.asIs.env = x.policy, x.env
	x.version = reach.Version(x.policy, x.runner.Approval, x.runner.live.Policy().Version())
	p := x.patch
	closed, why, err := x.closedTo(ctx, p.names)
	if err != nil || p.err != nil {
		return err
	}
	questions, _ := x.runner.Approval.Granular()
	reason, decision := "", event.DecisionAllow
	switch {
	case why != "":
		reason, decision = rejected(x.policy, why), event.DecisionForbid
	case len(closed) > 0 && !questions.SandboxApproval:
		reason = rejected(x.policy, strings.Join(closed, ", "))
		decision = event.DecisionForbid
	case len(closed) > 0:
		reason = "it changes files that the sandbox keeps closed"
		decision = event.DecisionPrompt
	case x.runner.Approval.Known() == approval.Untrusted:
		reason, decision = "every patch is asked about", event.DecisionPrompt
	}
	required := make([]string, 0, len(closed))
	for _, name := range closed {
		required = append(required, "write:"+name)
	}
	x.emit(event.Judged{Args: x.args, Dir: x.dir, Decision: decision, Reason: reason,
		PolicyVersion: x.version, Requires: required,
		Review: x.runner.Reviewer != nil && decision != event.DecisionForbid})
	if decision == event.DecisionForbid {
		return fmt.Errorf("%w: %s", ErrForbidden, reason)
	}
	if err := x.runner.permits(required...); err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	if decision == event.DecisionAllow && x.runner.Reviewer == nil {
		return nil
	}
	return x.approvePatch(ctx, decision == event.DecisionPrompt, reason, required)
}

// approvePatch asks whether the patch may be applied. What is approved for the session is each of its files.
func (x *execution) approvePatch(ctx context.Context, needed bool, reason string, required []string) error {
	approver := x.approver(needed)
	if approver == nil {
		return fmt.Errorf("%w: %s, and no approver is configured", ErrRefused, reason)
	}
	if reason == "" {
		reason = fmt.Sprintf(strictReview, x.policy.Name(), x.policy.Network())
	}
	q := x.request(approval.KindPatch, reason, required, reach.Identity{})
	q.Script, q.Justification = x.patch.text, x.cmd.Justification
	if x.runner.Reviewer == nil {
		q.Key, q.Keys = reach.Version(x.policy, approval.KindPatch), x.patch.names
	}
	switch answer, err := x.ask(ctx, approver, q); {
	case errors.Is(err, approval.ErrPass):
		return fmt.Errorf("%w: %s, and there is no one to ask", ErrRefused, reason)
	case err != nil:
		return err
	case !answer.Approves():
		return fmt.Errorf("%w: %s: %s", ErrRefused, reason, answer.Refusal())
	}
	return nil
}

// rejected is why a patch is not applied, as agents know it.
func rejected(p sandbox.Policy, what string) string {
	why := "writing outside of the project"
	if len(p.Writes()) == 0 {
		why = "writing is blocked by read-only sandbox"
	}
	return "patch rejected: " + why + "; rejected by user approval settings (" + what + ")"
}

// closedTo returns those of some files that a command in the sandbox could not change, and why that holds
// also where it is approved; empty where an approval is enough.
func (x *execution) closedTo(ctx context.Context, names []string) (closed []string, why string, err error) {
	if x.policy.Mode() != sandbox.Managed {
		return nil, "", nil
	}
	closes, made, err := x.closes(ctx)
	if err != nil {
		return nil, "", err
	}
	x.patch.made = made
	var ds []sandbox.Denial
	for _, name := range names {
		a := sandbox.Access{Op: sandbox.Write, Path: name}
		if cause := closes(a); cause != nil {
			closed = append(closed, name)
			ds = append(ds, sandbox.Denial{Access: a, Errno: "EROFS", Source: sandbox.Notified,
				Rule: cause.Error()})
		}
	}
	r := &reach.DeniedRun{Policy: x.policy, Dir: x.dir, Args: x.args, Env: x.env, OS: x.host.OS, Local: true,
		Executor: x.runner.executor(), Spec: x.bareSpec(), Named: true}
	r.Complete(ds)
	for _, d := range ds {
		if d.Grant == "" && d.Wider == "" {
			return closed, d.Path + ": " + d.Rule, nil
		}
	}
	return closed, "", nil
}

// bareSpec is what decides which files a command could change.
// A private /tmp is another directory than the one that the names of a patch are in.
func (x *execution) bareSpec() *executor.Spec {
	spec := &executor.Spec{Run: x.id, Args: []string{"/bin/sh"}, Dir: x.dir, Env: x.env, Policy: x.policy,
		Allow: x.allow, Level: x.cmd.Level, Tmp: "host", NoCaches: true, NoObserver: x.cmd.NoObserver}
	if x.privateTmp() {
		spec.Policy = x.policy.WithEntries(sandbox.PathEntry("/tmp", sandbox.LevelRead))
	}
	return spec
}

// closes returns what says why the sandbox of a command would close a file, and what notices new names: by a
// plan of it where the executor makes one, else by the policy, which notices nothing.
func (x *execution) closes(ctx context.Context) (func(sandbox.Access) error, executor.Writing, error) {
	planner, ok := executor.As[interface {
		Opens(context.Context, *executor.Spec) (func(sandbox.Access) error, executor.Writing, error)
	}](x.runner.executor())
	if ok {
		closes, made, err := planner.Opens(ctx, x.bareSpec())
		return closes, made, noSandbox(err)
	}
	return func(a sandbox.Access) error {
		if ruling, rule := x.bareSpec().Policy.Explain(a); ruling != sandbox.Allow {
			return errors.New(rule)
		}
		return nil
	}, nil, nil
}

// apply applies the patch.
func (p *patching) apply(ctx context.Context, stdout, stderr io.Writer) *executor.Exit {
	end, made := &executor.Exit{}, func() []executor.New { return nil }
	if p.made != nil {
		made = p.made(p.names)
	}
	summary, err := p.applied(ctx)
	if stray := (*patch.StrayError)(nil); errors.Is(err, context.Canceled) && !errors.As(err, &stray) {
		return nil // and it was undone, or the next patch does that
	}
	if err != nil { // names are those of the model
		_, _ = io.WriteString(stderr, p.says+printed(err.Error())+"\n")
		end.Code = 1
		return end
	}
	end.New = made()
	if _, err := io.WriteString(stdout, printed(summary)); err != nil {
		end.Code = 1
	}
	return end
}

// printed escapes what a terminal would obey.
func printed(s string) string {
	parts := strings.Split(s, "\t")
	for i := range parts {
		parts[i] = text.Lines(parts[i])
	}
	return strings.Join(parts, "\t")
}

func (p *patching) applied(ctx context.Context) (string, error) {
	if p.err != nil {
		return "", p.err
	}
	judged := map[string]bool{}
	for _, name := range p.names {
		judged[name] = true
	}
	plan, err := patch.Make(ctx, p.patch, patch.Options{Dir: p.dir,
		Allow: func(path string) bool { return judged[path] }})
	if err != nil {
		return "", err
	}
	defer func() { _ = plan.Close() }() // what is open has no more to say
	state, err := dirs.Dir()
	if err != nil {
		return "", err
	}
	if err := plan.Apply(ctx, filepath.Join(state, "patches")); err != nil {
		return "", err
	}
	return plan.Summary(), nil
}

// A performer is an executor that applies patches. Others, such as one that only hears what is decided, do
// not: nothing is changed behind their back.
type performer interface {
	Perform(spec *executor.Spec, do executor.Task) (executor.Process, error)
}

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
