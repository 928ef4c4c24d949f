// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/internal/run/accesses"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// questionsOf has questions asked while an attempt runs. The time of the command, and that of those who wait
// for it, stands still meanwhile.
func (x *execution) questionsOf(a *attempt) {
	a.questions.Limit = &x.runner.asking
	a.questions.Open = func(open bool) {
		a.limit.Pause(open)
		x.waits.Pause(open)
		if x.resumed != nil && !open {
			x.resumed()
		}
	}
	a.spec.AskHost = a.hosts.Decide
	if x.runner.Approval.Known() == approval.Never || x.approver(true) == nil {
		return
	}
	if a.spec.Policy.Network() == sandbox.NetworkProxy {
		a.hosts = &access.HostQuestions{Questions: &a.questions, Ask: x.askHost,
			Answered: func(r network.Request, d approval.Decision) {
				if d.Answer == approval.Abort || x.runner.StopOnRefusedHost && !d.Approves() {
					x.refuse(a, access.HostRefusal(r, d))
				}
			}}
		a.spec.AskHost = a.hosts.Decide
	}
	x.accessesOf(a)
}

// recorder returns what is told about the command's network; nil where nothing hears of it.
func (x *execution) recorder() func(network.Record) {
	if x.runner.events == nil && x.runner.Logger == nil && x.terminal.To == nil {
		return nil
	}
	return func(r network.Record) { x.emit(event.Network{Record: r}) }
}

// refuse stops a command because of an answer, and notes why.
func (x *execution) refuse(a *attempt, why string) {
	x.mu.Lock()
	if x.refused == nil {
		x.refused = fmt.Errorf("%w: %s", ErrRefused, why)
	}
	x.mu.Unlock()
	a.stop(EndRefused)
}

// askHost asks about a host.
func (x *execution) askHost(ctx context.Context, r network.Request) (approval.Decision, error) {
	if need := access.HostRequired(r); x.runner.bars(need) {
		return approval.Decision{Source: approval.FromConfig, Message: x.runner.permits(need).Error()}, nil
	}
	d, err := x.askWaiting(ctx, approval.KindNetwork, func(q *approval.Request) {
		access.FillHostQuestion(q, r, x.runner.Remember != nil && !x.runner.bars(access.HostRemembered(r)))
	})
	if err == nil && d.Answer == approval.ApprovedHost {
		x.rememberHost(r, d)
	}
	return d, err
}

// askWaiting asks while the command runs. What another command was allowed once is asked about again for
// this one.
func (x *execution) askWaiting(ctx context.Context, kind approval.Kind,
	fill func(*approval.Request)) (approval.Decision, error) {
	for {
		q := x.request(kind, "", nil, reach.IdentityOf(x.identity()))
		fill(q)
		d, shared, err := x.put(ctx, x.approver(true), q)
		if err != nil || !shared || d.Answer != approval.Approved {
			return d, err
		}
	}
}

// rememberHost has a host count from now on, also for commands that run.
func (x *execution) rememberHost(r network.Request, d approval.Decision) {
	rule, entry := access.HostAmendment(r, d.Deny)
	err := x.runner.remember(nil, func(at *Runner) (*rules.Set, string, error) {
		if err := at.live.Update(func(p *network.Policy) (*network.Policy, error) { return p.Amend(entry) }); err != nil {
			return nil, "", err
		}
		return at.rules().AmendNetwork(rule)
	})
	if err != nil {
		x.note("the host was not remembered: " + err.Error())
	}
}

// accessesOf has the sandbox of an attempt ask about what it denies, if the Cmd wants that. Where a second
// attempt with more may not be asked about, nothing is: the policy never, a rule that confines the command.
func (x *execution) accessesOf(a *attempt) {
	if !x.cmd.AskWrites || a.spec.Policy.Mode() != sandbox.Managed || x.retry == judge.RetryNone ||
		x.confined != "" {
		return
	}
	a.accesses = &accesses.Questions{
		Questions: &a.questions, Time: x.runner.AnswerTime, Staged: a.spec.Stage != nil,
		Put: func(ctx context.Context, fill func(*approval.Request)) (approval.Decision, error) {
			return x.askWaiting(ctx, approval.KindAccess, fill)
		},
		Bars:       func(required []string) bool { return x.runner.bars(required...) },
		Word:       x.deniedRun(a).Asks,
		Remembered: x.runner.memory.List,
		Opened: func(g event.Granted, required string) {
			x.runner.opens([]string{required})
			x.emit(g)
		},
	}
	a.spec.AskAccess = a.accesses.Decide
}
