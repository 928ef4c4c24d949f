// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/questions"
	"github.com/sallyport-dev/sallyport/network"
)

// answerTime is how long a question about a host is open.
const answerTime = 2 * time.Minute

// A HostQuestions has hosts asked about for one command. Its fields must not change after the first call; its
// methods may be called from several goroutines at once.
type HostQuestions struct {
	// Ask puts a question and returns its answer. It ends with ctx.
	Ask func(ctx context.Context, r network.Request) (approval.Decision, error)
	// Answered, if not nil, is told each answer before the connections that wait for it.
	Answered func(r network.Request, d approval.Decision)
	// Questions are those of the command.
	Questions *questions.Command
}

// A subject is what one question is about. Protocols over TCP are one: it is the same host that is
// reached, whichever way a program goes about it.
type subject struct {
	host network.Host
	port uint16
	udp  bool
}

func subjectOf(r network.Request) subject {
	return subject{r.Host, r.Port, r.Protocol == network.SOCKS5UDP}
}

// decided is a decision by an answer, or for want of one.
func decided(ruling network.Ruling, reason network.Reason) network.Decision {
	return network.Decision{Ruling: ruling, Reason: reason, Source: network.Decider}
}

// Decide decides about a request that the policy asks about. It blocks until there is an answer, at
// most two minutes; when ctx ends, it denies, and others go on waiting. The answer counts as long as the
// command runs. A nil HostQuestions denies.
func (d *HostQuestions) Decide(ctx context.Context, r network.Request) network.Decision {
	if d == nil {
		return network.Decision{Ruling: network.Deny, Reason: network.NotAllowed,
			Source: network.BaselinePolicy}
	}
	q := &questions.Question{
		Subject: subjectOf(r), Time: answerTime,
		Put:   func(ctx context.Context) (approval.Decision, error) { return d.Ask(ctx, r) },
		Keeps: func(a approval.Decision) bool { return a.Answer != approval.TimedOut },
	}
	if d.Answered != nil {
		q.Answered = func(a approval.Decision) { d.Answered(r, a) }
	}
	a, err := d.Questions.Ask(ctx, q)
	switch {
	case errors.Is(err, questions.ErrTooMany):
		return decided(network.Deny, network.TooManyPending)
	case errors.Is(err, questions.ErrTime), err == nil && a.Answer == approval.TimedOut:
		return decided(network.Deny, network.ApprovalTimeout)
	case err != nil || !a.Approves():
		return decided(network.Deny, network.NotAllowed)
	}
	return decided(network.Allow, network.Allowed)
}
