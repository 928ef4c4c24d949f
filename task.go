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

// requirement says by a set of rules whether the command runs, whether that needs an approval, and
// what may be asked after a denial. It is decided by the rules, the Runner's approval policy and what
// the Cmd asks for. What stays in the sandbox and is in no rule is allowed, because the Runner's owner chose the sandbox.
func (x *execution) requirement(set *rules.Set) judge.Decision {
	q := &judge.Question{
		Command: x.args, Arg0: x.cmd.Arg0, Rules: set, Host: rules.Host{Dir: x.dir, Home: x.places.Home},
		Approval: x.runner.Approval, SafeList: x.runner.SafeList,
		Place: judge.PlaceOf(x.asIs.policy), Denies: x.asIs.policy.Denies(),
		Hosts: judge.HostsOf(x.asIs.policy, x.runner.live.Policy()), Ceiling: x.runner.bars(approval.Outside),
	}
	if x.host.Local {
		q.Site = &reach.Site{Reach: x.reach(), Dir: x.dir, Env: x.env, Login: x.cmd.Login}
	}
	q.Want(x.cmd.Unsandboxed, len(x.cmd.AskFor) > 0)
	return judge.Judge(q)
}

// identity is what approvals rest on: the command as it was before anything was approved.
func (x *execution) identity() *identity.Command {
	return &identity.Command{
		Run: x.id, Environment: x.host.Environment, Local: x.host.Local,
		Args: x.args, Arg0: x.cmd.Arg0, Dir: x.dir, Env: x.asIs.env, Policy: x.asIs.policy, HostTmp: x.cmd.Tmp == "host", Allow: x.cmd.Allow,
		Shape: []any{x.cmd.Level, x.cmd.Tmp, x.cmd.NoCaches, x.cmd.NoObserver, x.cmd.ProtectHardLinks, x.cmd.OwnershipErrors, x.cmd.TTY != nil, x.host.OS},
	}
}

// show writes into a question the words of the command and what its caller says about it.
func (x *execution) show(q *approval.Request) {
	q.Args, q.Script, q.Dir, q.Environment = x.args, x.cmd.Script, x.dir, x.host.Environment
	if q.Kind == approval.KindCommand {
		q.Justification = x.cmd.Justification
	}
}

// repeatable reports whether it can be attempted once more. It is false for a command whose input, output or descriptors were used: a session, unless
// it was sent nothing and its output goes on.
func (x *execution) repeatable() bool {
	return (!x.session || x.cmd.Retry && x.host.Local) && len(x.cmd.Files) == 0 && x.input0.Again() &&
		(x.queue == nil || x.queue.Hold())
}

// rewind sets the input back to where it began, for another attempt; false means that it is too late.
func (x *execution) rewind() bool {
	if x.again != nil {
		x.again()
	}
	return x.input0.Rewind()
}

// repeats reports whether it is asked about another attempt: never about one that
// went well or was stopped.
func (x *execution) repeats(a *attempt) bool {
	return x.retry > judge.RetryNone && x.approver(true) != nil && x.attempts == 1 &&
		a.end == EndExited && a.exit.Code != 0 && a.spec.Policy.Mode() == sandbox.Managed && x.repeatable()
}
