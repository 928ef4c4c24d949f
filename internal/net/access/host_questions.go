// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/network"
)

// Bounds of open questions: of one command, of all that share a [QuestionLimit], and in time.
const (
	commandQuestions = 8
	allQuestions     = 32
	answerTime       = 2 * time.Minute
)

// A QuestionLimit bounds the open questions of several HostQuestions to 32. The zero Limit is ready.
type QuestionLimit struct{ open atomic.Int32 }

// enter counts a question; false means that there are too many.
func (l *QuestionLimit) enter() bool {
	if l.open.Add(1) <= allQuestions {
		return true
	}
	l.open.Add(-1)
	return false
}

// A HostQuestions has hosts asked about for one command. Its fields must not change after the first call; its
// methods may be called from several goroutines at once. Close must be called.
type HostQuestions struct {
	// Ask puts a question and returns its answer. It ends with ctx.
	Ask func(ctx context.Context, r network.Request) (approval.Decision, error)
	// Answered, if not nil, is told each answer before the connections that wait for it.
	Answered func(r network.Request, d approval.Decision)
	// Open, if not nil, is told when the first question is open, and when none is any more.
	Open func(open bool)
	// Limit is shared with other commands.
	Limit *QuestionLimit

	once   sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu     sync.Mutex
	closed bool
	asked  map[subject]*answer
	open   int
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

// An answer is what was decided about a subject, or will be.
type answer struct {
	done     chan struct{} // closed when there is a decision
	decision network.Decision
}

// decided is a decision by an answer, or for want of one.
func decided(ruling network.Ruling, reason network.Reason) network.Decision {
	return network.Decision{Ruling: ruling, Reason: reason, Source: network.Decider}
}

// Decide decides about a request that the policy asks about. It blocks until there is an answer, at
// most two minutes; when ctx ends, it denies, and others go on waiting. A nil HostQuestions denies.
func (d *HostQuestions) Decide(ctx context.Context, r network.Request) network.Decision {
	if d == nil {
		return network.Decision{Ruling: network.Deny, Reason: network.NotAllowed,
			Source: network.BaselinePolicy}
	}
	a, refusal := d.find(r)
	if a == nil {
		return decided(network.Deny, refusal)
	}
	select {
	case <-a.done:
		return a.decision
	case <-ctx.Done():
		return decided(network.Deny, network.NotAllowed)
	}
}

// find returns the answer about a request, which is asked for if it was not yet; or why it is not.
func (d *HostQuestions) find(r network.Request) (*answer, network.Reason) {
	d.once.Do(func() {
		d.ctx, d.cancel = context.WithCancel(context.Background())
		d.asked = map[subject]*answer{}
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	s := subjectOf(r)
	switch a := d.asked[s]; {
	case a != nil:
		return a, ""
	case d.closed:
		return nil, network.NotAllowed
	case d.open == commandQuestions || !d.Limit.enter():
		return nil, network.TooManyPending
	}
	a := &answer{done: make(chan struct{})}
	d.asked[s] = a
	if d.open++; d.open == 1 && d.Open != nil {
		d.Open(true)
	}
	d.asking.Go(func() { d.ask(r, s, a) })
	return a, ""
}

// ask asks and answers those who wait. What came to nothing is asked anew by the next request.
func (d *HostQuestions) ask(r network.Request, s subject, a *answer) {
	ctx, cancel := context.WithTimeout(d.ctx, answerTime)
	defer cancel()
	got, err := d.Ask(ctx, r)
	switch {
	case ctx.Err() != nil && d.ctx.Err() == nil, err == nil && got.Answer == approval.TimedOut:
		a.decision = decided(network.Deny, network.ApprovalTimeout)
	case err != nil || !got.Approves():
		a.decision = decided(network.Deny, network.NotAllowed)
	default:
		a.decision = decided(network.Allow, network.Allowed)
	}
	if err == nil && d.Answered != nil {
		d.Answered(r, got)
	}
	d.mu.Lock()
	if err != nil || a.decision.Reason == network.ApprovalTimeout {
		delete(d.asked, s)
	}
	d.Limit.open.Add(-1)
	if d.open--; d.open == 0 && d.Open != nil {
		d.Open(false)
	}
	d.mu.Unlock()
	close(a.done)
}

// Close withdraws the questions that are open, which are denied, and waits for their end. Later
// requests are denied. A nil HostQuestions has none.
func (d *HostQuestions) Close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.closed = true
	cancel := d.cancel
	d.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	d.asking.Wait()
}
