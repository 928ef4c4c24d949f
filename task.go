// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/identity"
	"github.com/sallyport-dev/sallyport/internal/judge"
	"github.com/sallyport-dev/sallyport/internal/reach"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A task is what execute judges, asks about and attempts, in what it differs from other tasks:
// policies, questions, what is remembered, attempts and results are those of every execution.
// Commands are tasks; what changes files without one is to be another, so that all that the
// product writes is judged, approved, confined and recorded in one way.
type task interface {
	// requirement says by a set of rules whether it runs, whether that needs an approval, and
	// what may be asked after a denial.
	requirement(*rules.Set) judge.Decision
	// identity is what approvals of it rest on.
	identity() *identity.Command
	// show writes into a question what it is about.
	show(*approval.Request)
	// repeatable reports whether it can be attempted once more.
	repeatable() bool
	// rewind prepares that; false means that it is too late.
	rewind() bool
}

// A command is the task of every Cmd.
type command struct{ *execution }

// requirement is decided by rules, the Runner's approval policy and what the Cmd asks for. What
// stays in the sandbox and is in no rule is allowed, because the Runner's owner chose the sandbox.
func (c command) requirement(set *rules.Set) judge.Decision {
	q := &judge.Question{
		Command: c.args, Arg0: c.cmd.Arg0, Rules: set, Host: rules.Host{Dir: c.dir, Home: c.places.Home},
		Approval: c.runner.Approval, SafeList: c.runner.SafeList,
		Place: judge.PlaceOf(c.asIs.policy), Denies: c.asIs.policy.Denies(),
		Hosts: judge.HostsOf(c.asIs.policy, c.runner.live.Policy()), Ceiling: c.runner.bars(approval.Outside),
	}
	if c.host.Local {
		q.Site = &reach.Site{Reach: c.reach(), Dir: c.dir, Env: c.env, Login: c.cmd.Login}
	}
	q.Want(c.cmd.Unsandboxed, len(c.cmd.AskFor) > 0)
	return judge.Judge(q)
}

// identity rests on the command as it was before anything was approved.
func (c command) identity() *identity.Command {
	return &identity.Command{
		Run: c.id, Environment: c.host.Environment, Local: c.host.Local,
		Args: c.args, Arg0: c.cmd.Arg0, Dir: c.dir, Env: c.asIs.env, Policy: c.asIs.policy, HostTmp: c.cmd.Tmp == "host", Allow: c.cmd.Allow,
		Shape: []any{c.cmd.Level, c.cmd.Tmp, c.cmd.NoCaches, c.cmd.NoObserver, c.cmd.ProtectHardLinks, c.cmd.OwnershipErrors, c.cmd.TTY != nil, c.host.OS},
	}
}

// show shows the words of the command and what its caller says about it.
func (c command) show(q *approval.Request) {
	q.Args, q.Script, q.Dir, q.Environment = c.args, c.cmd.Script, c.dir, c.host.Environment
	if q.Kind == approval.KindCommand {
		q.Justification = c.cmd.Justification
	}
}

// repeatable is false for a command whose input, output or descriptors were used: a session, unless
// it was sent nothing and its output goes on.
func (c command) repeatable() bool {
	return (!c.session || c.cmd.Retry && c.host.Local) && len(c.cmd.Files) == 0 && c.input0.Again() &&
		(c.queue == nil || c.queue.Hold())
}

// rewind sets the input back to where it began.
func (c command) rewind() bool {
	if c.again != nil {
		c.again()
	}
	return c.input0.Rewind()
}

// repeats reports whether it is asked about another attempt of the task: never about one that
// went well or was stopped.
func (x *execution) repeats(a *attempt) bool {
	return x.retry > judge.RetryNone && x.approver(true) != nil && x.attempts == 1 &&
		a.end == EndExited && a.exit.Code != 0 && a.policy.Mode() == sandbox.Managed && x.task.repeatable()
}
