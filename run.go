// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/rules"
)

// Run runs a command to its end and returns what happened. A command that ran has a
// Result, whatever its exit code; an error means that it did not run, or that its end
// is not known ([ErrEndUnknown]: then it may have run, and may run still). Both are returned when the
// run was cut short: by the end of ctx (the error wraps its cause) or by Close ([ErrClosed]). The
// command's process tree is then ended as after a timeout, and the Result is what is known.
//
// Run returns when nothing of the command is left: neither a process, nor a goroutine
// that serves it, except one that is blocked in a Read of Cmd.Stdin or in a Write of a
// writer that makes no progress.
func (r *Runner) Run(ctx context.Context, c *Cmd) (*Result, error) { return r.run(ctx, c, nil) }

// run is Run in a shared sandbox, or with nil in one of the command's own.
func (r *Runner) run(ctx context.Context, c *Cmd, in *Sandbox) (*Result, error) {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out, err := in.enter()
	if err != nil {
		return nil, err
	}
	defer out()
	x, err := r.newExecution(ctx, c)
	if err != nil {
		return nil, err
	}
	x.sandbox = in
	return x.execute(ctx, ctx, func(*attempt) {})
}

// execute is the way of every command, of Run and of Start alike: judge it, ask where
// an approval is needed, attempt it, attempt it once more with what was approved then, and
// conclude. The end of ctx prevents the start; the end of life ends the command. Running is
// called with each attempt once its process runs.
func (x *execution) execute(ctx, life context.Context, running func(*attempt)) (*Result, error) {
	var err error
	if x.patch != nil {
		err = x.authorizePatch(ctx)
	} else {
		err = x.authorize(ctx, x.judge())
	}
	if err != nil {
		return x.conclude(nil, err)
	}
	a, err := x.attempt(ctx, life, running)
	if a == nil || err != nil {
		return x.conclude(a, err)
	}
	switch again, err := x.widen(life, a); {
	case err != nil:
		return x.abandon(a, err)
	case !again:
		return x.conclude(a, nil)
	}
	x.first = x.result(a)
	second, err := x.attempt(life, life, running)
	switch {
	case second != nil:
		return x.conclude(second, err)
	case life.Err() != nil:
		return x.abandon(a, err)
	}
	x.first = nil
	if errors.Is(err, ErrEndUnknown) {
		return x.conclude(a, err)
	}
	x.noted = append(x.noted, "it was not run again: "+err.Error())
	return x.conclude(a, nil)
}

// abandon concludes a run that was canceled after its first attempt, before a second one began.
func (x *execution) abandon(a *attempt, err error) (*Result, error) {
	x.first = nil
	first := x.result(a)
	a.end = EndCanceled
	if by := new(InterruptedError); errors.As(err, &by) {
		a.exit.LastSignal = by.Signal
	}
	res, err := x.conclude(a, err)
	res.First = first
	return res, err
}

// attempt runs the command once. Without an attempt the error says why there is no process.
func (x *execution) attempt(ctx, life context.Context, running func(*attempt)) (*attempt, error) {
	a, err := x.begin(ctx, x.policy)
	if err != nil {
		return nil, err
	}
	running(a)
	x.life = life
	return a, x.follow(life, a)
}

// judge has the task judged, and reports it.
func (x *execution) judge() judge.Decision {
	x.asIs.policy, x.asIs.env = x.policy, x.env
	x.version = reach.Version(x.policy, x.runner.Approval, x.runner.live.Policy().Version())
	d := x.requirement(x.runner.rules())
	x.retry = d.Retry
	held := ""
	if d.Held != nil {
		held = d.Held.Error()
		x.note("it stays in the sandbox although a rule leads it outside: " + held)
	}
	if d.Rule != nil {
		x.rule = &Rule{File: d.Rule.File, Line: d.Rule.Line, Column: d.Rule.Column,
			Decision: d.Rule.Decision.String(), Sandbox: d.Rule.Sandbox.String(),
			Justification: d.Rule.Justification}
	}
	x.emit(event.Judged{Args: x.args, Dir: x.dir, Decision: decisions[d.Answer], Reason: d.Reason,
		Rule: x.rule, Review: x.runner.Reviewer != nil && d.Answer != judge.Forbid, PolicyVersion: x.version,
		Path: d.Path(), Requires: d.Requires(x.cmd.AskFor), Held: held})
	return d
}

// decisions are the words of event for answers.
var decisions = [...]string{judge.Forbid: event.DecisionForbid, judge.Ask: event.DecisionPrompt,
	judge.Skip: event.DecisionAllow}

// place fixes the policy where rules say where the command runs.
func (x *execution) place(d judge.Decision) error {
	switch d.Where {
	case rules.Unsaid:
		return nil
	case rules.Outside:
		return x.leave()
	}
	policy, err := judge.Confine(x.policy, d.Where, x.places)
	if err != nil {
		return fmt.Errorf("sallyport: the policy is invalid: %w", err)
	}
	if !policy.Equal(x.policy) {
		x.confined = "rule"
		if x.rule != nil && x.rule.Sandbox == d.Where.String() {
			x.confined += " " + rules.Pos{File: x.rule.File, Line: x.rule.Line, Col: x.rule.Column}.String()
		}
		x.confined += " (sandbox=" + d.Where.String() + ")"
	}
	return x.confine(policy)
}

// byRule adds to an error the rule that decided, if there is one.
func (x *execution) byRule(err error) error {
	if x.rule == nil {
		return err
	}
	return &RuleError{Rule: *x.rule, Err: err}
}

// conclude reports the end of a run once.
func (x *execution) conclude(a *attempt, err error) (*Result, error) {
	x.keys.Close()
	x.look.Close()
	var res *Result
	switch {
	case a != nil:
		if err := x.runner.events.Err(); err != nil {
			x.note("events are missing: " + err.Error())
		}
		res = x.result(a)
		x.outcome(a)
	case len(x.approvals) > 0:
		err = &ApprovalError{x.approvals, err}
	}
	x.ended(res, err)
	return res, err
}

// requirement says by a set of rules whether the command runs, whether that needs an approval, and
// what may be asked after a denial. It is decided by the rules, the Runner's approval policy and what
// the Cmd asks for. What stays in the sandbox and is in no rule is allowed, because the Runner's owner
// chose the sandbox.
func (x *execution) requirement(set *rules.Set) judge.Decision {
	q := &judge.Question{
		Command: x.args, Arg0: x.cmd.Arg0, Rules: set, Host: rules.Host{Dir: x.dir, Home: x.places.Home},
		Approval: x.runner.Approval, SafeList: x.runner.SafeList,
		Place: judge.PlaceOf(x.asIs.policy), Denies: x.asIs.policy.Denies() || x.cmd.Stays ||
			x.cmd.Stage != nil,
		Hosts: judge.HostsOf(x.asIs.policy, x.runner.live.Policy()), Ceiling: x.runner.bars(approval.Outside),
	}
	if x.host.Local {
		q.Site = &reach.Site{Reach: x.reach(), Dir: x.dir, Env: x.env, Login: x.cmd.Login}
	}
	q.Want(x.cmd.Unsandboxed, len(x.cmd.AskFor) > 0)
	d := judge.Judge(q)
	if x.cmd.Stage != nil && d.Rule != nil && d.Rule.Sandbox == rules.Outside && d.Held == nil {
		d.Held = errStaged
	}
	return d
}
