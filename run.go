// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Run runs a command to its end and returns what happened. A command that ran has a
// Result, whatever its exit code; an error means that it did not run, or that its end
// is not known. Both are returned when the run was cut short: by the end of ctx (the
// error wraps its cause) or by Close ([ErrClosed]). The command's process tree is then
// ended as after a timeout, and the Result is what is known.
//
// Run returns when nothing of the command is left: neither a process, nor a goroutine
// that serves it, except one that is blocked in a Read of Cmd.Stdin or in a Write of a
// writer that makes no progress.
func (r *Runner) Run(ctx context.Context, c *Cmd) (*Result, error) {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	x, err := r.newExecution(ctx, c)
	if err != nil {
		return nil, err
	}
	return x.execute(ctx, ctx, func(*attempt) {})
}

// execute is the way of every command, of Run and of Start alike: judge it, ask where
// an approval is needed, attempt it, and conclude. The end of ctx prevents the
// start; the end of life ends the command. Running is called once the process runs.
func (x *execution) execute(ctx, life context.Context, running func(*attempt)) (*Result, error) {
	policy, err := x.authorize(ctx, x.judge())
	if err != nil {
		return x.conclude(nil, err)
	}
	a, err := x.begin(ctx, policy)
	if err != nil {
		return x.conclude(nil, err)
	}
	running(a)
	x.life = life
	err = x.follow(life, a)
	// A retry with the grants that an approver gave for the attempt's denials goes here.
	return x.conclude(a, err)
}

// A decision says whether a command may run.
type decision struct {
	answer string // one of event's Decision constants; any other value forbids
	reason string // a clause
}

// judge decides by the Runner's policy alone. What stays in the policy is allowed,
// because the Runner's owner chose it; leaving the sandbox needs an approval.
func (x *execution) judge() decision {
	d := decision{answer: event.DecisionAllow}
	if x.cmd.Unsandboxed && x.policy.Mode() != sandbox.Full {
		d = decision{event.DecisionPrompt, "it asks to run outside the sandbox"}
	}
	x.emit(event.Judged{Args: x.args, Dir: x.dir, Decision: d.answer, Reason: d.reason})
	return d
}

// authorize turns a decision into the policy of the first attempt, or into the reason why
// the command does not run. It asks the Runner's approver where the decision says so.
func (x *execution) authorize(ctx context.Context, d decision) (sandbox.Policy, error) {
	switch d.answer {
	case event.DecisionAllow:
		return x.policy, nil
	case event.DecisionPrompt:
		if x.runner.approver == nil {
			return sandbox.Policy{}, fmt.Errorf("%w: %s, and no approver is configured", ErrRefused, d.reason)
		}
		q := question{Args: x.args, Dir: x.dir, Reason: d.reason, Justification: x.cmd.Justification}
		err := x.runner.approver.approve(ctx, q)
		switch {
		case ctx.Err() != nil:
			return sandbox.Policy{}, canceled(ctx)
		case err != nil:
			return sandbox.Policy{}, fmt.Errorf("%w: %s: %w", ErrRefused, d.reason, err)
		}
		return sandbox.FullAccess(), nil
	}
	return sandbox.Policy{}, fmt.Errorf("%w: %s", ErrForbidden, d.reason)
}

// An approver answers questions about commands that need an approval. Nil approves;
// an error is the reason for refusing. It may block until ctx ends.
type approver interface {
	approve(ctx context.Context, q question) error
}

// A question is what an approver is asked: whether this command may run outside of the
// sandbox.
type question struct {
	Args          []string
	Dir           string
	Reason        string // of the decision
	Justification string // the caller's words
}

// conclude reports the end of a run once.
func (x *execution) conclude(a *attempt, err error) (*Result, error) {
	var res *Result
	if a != nil {
		res = x.result(a)
	}
	x.ended(res, err)
	return res, err
}
