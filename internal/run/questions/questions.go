// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package questions has people asked about a command while it runs: about the hosts that it wants to reach,
// and about the files that it wants to write. What is asked about waits; the rest of the command goes on.
package questions

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
)

// Bounds of open questions: of one command, and of all that share a [Limit].
const (
	commandQuestions = 8
	allQuestions     = 32
)

// The errors of [Command.Ask].
var (
	ErrTooMany = errors.New("too many questions are open")
	ErrTime    = errors.New("no answer came in time")
	ErrClosed  = errors.New("the command has ended")
	errLeft    = errors.New("nothing waits for the answer")
	// errSignal is for a question that a signal has ended, which asks the command to end.
	errSignal = errors.New("a signal asked the command to end")
)

// A Limit bounds the open questions of several commands to 32. The zero Limit is ready.
type Limit struct{ open atomic.Int32 }

// enter counts a question; false means that there are too many.
func (l *Limit) enter() bool {
	if l.open.Add(1) <= allQuestions {
		return true
	}
	l.open.Add(-1)
	return false
}

// A Question is about one thing that a command wants.
type Question struct {
	// Subject is what it is about, of a comparable type: one question is for all that ask about it.
	Subject any
	// Time is how long it may be open.
	Time time.Duration
	// Put asks. It ends with ctx.
	Put func(ctx context.Context) (approval.Decision, error)
	// Answered, if not nil, is told the answer before those who wait for it.
	Answered func(approval.Decision)
	// Keeps reports whether an answer is that of later questions about the subject as well.
	Keeps func(approval.Decision) bool
	// Serial says that one of these questions is open at a time, that the others wait, and that it is
	// withdrawn when nothing waits for the answer any more.
	Serial bool
}

// A Command has questions asked about one command. Its fields must not change after the first call; its
// methods may be called from several goroutines at once. Close must be called.
type Command struct {
	// Open, if not nil, is told when the first question is open, and when none is any more.
	Open func(open bool)
	// Limit is shared with other commands.
	Limit *Limit

	once   sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	turn   chan struct{} // has a token while a serial question is open
	asking sync.WaitGroup

	mu     sync.Mutex
	closed bool
	asked  map[any]*answer
	open   int
}

// An answer is what was decided about a subject, or will be.
type answer struct {
	done     chan struct{} // closed when there is a decision, or an error
	decision approval.Decision
	err      error

	waiting int // who wait for it
	cancel  context.CancelCauseFunc
	serial  bool
}

// Ask returns the answer to a question, which is asked unless it is open already, or has an answer that
// was kept. It blocks until then. The error is ErrTooMany, ErrTime, ErrClosed, the cause of ctx, or one of
// Put: then there is no answer, and the next one about the subject asks anew.
func (c *Command) Ask(ctx context.Context, q *Question) (approval.Decision, error) {
	a, err := c.find(q)
	if err != nil {
		return approval.Decision{}, err
	}
	defer c.leave(q, a)
	select {
	case <-a.done:
		return a.decision, a.err
	case <-ctx.Done():
		return approval.Decision{}, context.Cause(ctx)
	}
}

// find returns the answer to a question, which is asked if it was not yet.
func (c *Command) find(q *Question) (*answer, error) {
	c.once.Do(func() {
		c.ctx, c.cancel = context.WithCancel(context.Background())
		c.asked, c.turn = map[any]*answer{}, make(chan struct{}, 1)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.asked[q.Subject]; a != nil {
		a.waiting++
		return a, nil
	}
	if c.closed {
		return nil, ErrClosed
	}
	if !q.Serial && !c.enterLocked() {
		return nil, ErrTooMany
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	a := &answer{done: make(chan struct{}), waiting: 1, cancel: cancel, serial: q.Serial}
	c.asked[q.Subject] = a
	c.asking.Go(func() {
		defer cancel(nil)
		c.put(ctx, q, a)
	})
	return a, nil
}

// enterLocked counts a question that is open; false means that there are too many.
func (c *Command) enterLocked() bool {
	if c.open == commandQuestions || !c.Limit.enter() {
		return false
	}
	if c.open++; c.open == 1 && c.Open != nil {
		c.Open(true)
	}
	return true
}

// leave says that one does not wait for an answer any more.
func (c *Command) leave(q *Question, a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.waiting--; a.waiting == 0 && q.Serial {
		c.withdrawLocked(q.Subject, a, errLeft)
	}
}

// withdrawLocked ends a question, unless it has its answer. The next one about the subject asks anew.
func (c *Command) withdrawLocked(subject any, a *answer, why error) {
	select {
	case <-a.done:
	default:
		a.cancel(why)
		c.forgetLocked(subject, a)
	}
}

// put asks, and answers those who wait.
func (c *Command) put(ctx context.Context, q *Question, a *answer) {
	a.decision, a.err = c.inTurn(ctx, q)
	if a.err == nil && q.Answered != nil {
		q.Answered(a.decision)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.err != nil || !q.Keeps(a.decision) {
		c.forgetLocked(q.Subject, a)
	}
	close(a.done)
}

// forgetLocked forgets the answer of a subject, unless that has another one by now.
func (c *Command) forgetLocked(subject any, a *answer) {
	if c.asked[subject] == a {
		delete(c.asked, subject)
	}
}

// inTurn asks when it is the question's turn.
func (c *Command) inTurn(ctx context.Context, q *Question) (d approval.Decision, err error) {
	if q.Serial {
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return d, context.Cause(ctx)
		}
		defer func() { <-c.turn }()
		c.mu.Lock()
		entered := c.enterLocked()
		c.mu.Unlock()
		if !entered {
			return d, ErrTooMany
		}
	}
	defer c.exit()
	ctx, cancel := context.WithTimeoutCause(ctx, q.Time, ErrTime)
	defer cancel()
	d, err = q.Put(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return d, err
}

// exit counts a question that is over.
func (c *Command) exit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Limit.open.Add(-1)
	if c.open--; c.open == 0 && c.Open != nil {
		c.Open(false)
	}
}

// Interrupt withdraws the serial questions that have no answer: what waits for one is a call of the command,
// which sees no signal before it returns.
func (c *Command) Interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for subject, a := range c.asked {
		if a.serial {
			c.withdrawLocked(subject, a, errSignal)
		}
	}
}

// Close withdraws the questions that are open, and waits for their end. Later ones are not asked.
func (c *Command) Close() {
	c.mu.Lock()
	c.closed = true
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	c.asking.Wait()
}
