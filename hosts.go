// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// hostQuestions returns what asks about hosts while an attempt runs. Nil asks about none.
func (x *execution) hostQuestions(a *attempt) *access.HostQuestions {
	if a.spec.Policy.Network() != sandbox.NetworkProxy || x.runner.Approval.Known() == approval.Never ||
		x.approver(true) == nil {
		return nil
	}
	return &access.HostQuestions{
		Limit: &x.runner.asking, Ask: x.askHost, Open: a.limit.Pause,
		Answered: func(r network.Request, d approval.Decision) {
			if d.Answer == approval.Abort || x.runner.StopOnRefusedHost && !d.Approves() {
				x.refuse(r, d)
				a.stop(EndRefused)
			}
		},
	}
}

// recorder returns what is told about the command's network; nil for a Runner without Events and Logger.
func (x *execution) recorder() func(network.Record) {
	if x.runner.Events == nil && x.runner.Logger == nil {
		return nil
	}
	return func(r network.Record) { x.emit(event.Network{Record: r}) }
}

// refuse notes why the command is stopped.
func (x *execution) refuse(r network.Request, d approval.Decision) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refused == nil {
		x.refused = fmt.Errorf("%w: %s", ErrRefused, access.HostRefusal(r, d))
	}
}

// askHost asks about a host. What another command was allowed once is asked about again for this one.
func (x *execution) askHost(ctx context.Context, r network.Request) (approval.Decision, error) {
	if need := access.HostRequired(r); x.runner.bars(need) {
		return approval.Decision{Source: approval.FromConfig, Message: x.runner.permits(need).Error()}, nil
	}
	for {
		q := x.request(approval.KindNetwork, "", nil, reach.IdentityOf(x.identity()))
		access.FillHostQuestion(q, r, x.runner.Remember != nil && !x.runner.bars(access.HostRemembered(r)))
		d, shared, err := x.put(ctx, x.approver(true), q)
		if err == nil && shared && d.Answer == approval.Approved {
			continue
		}
		if err == nil && d.Answer == approval.ApprovedHost {
			x.rememberHost(r, d)
		}
		return d, err
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
