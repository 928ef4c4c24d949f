// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
)

// A QuestionServer is an Approver whose questions the terminal and other processes of the user can answer:
// the first answer counts. It listens from the first question on, until Close.
type QuestionServer struct {
	// Before is asked first, and alone; nil is no one.
	Before approval.Approver
	// Beside is asked at the same time as others; it must not be nil. If it passes, there is no
	// one in front of the terminal.
	Beside approval.Approver
	// Wait is how long a question stays open when Beside has passed; 0 means not at all. One for which a
	// command waits stays open as long as that, unless Wait is 0 and BeforeIsFinal.
	Wait time.Duration
	// BeforeIsFinal says that Before was asked about everything: where it passes and no one is in front of
	// the terminal, no question is open for longer than Wait.
	BeforeIsFinal bool
	// InConsole has a question for which there is no terminal wait for 10 minutes, where Wait is 0, as long
	// as a console of this user is open; else it is denied at once.
	InConsole bool
	// Waits is called for each question that begins to wait so, with how long, and whether a console is
	// open; nil does nothing.
	Waits func(r *approval.Request, wait time.Duration, console bool)
	// Remembered and Revoke are those of the Runner. They must not be nil.
	Remembered func() []approval.Remembered
	Revoke     func(id string) error
	// Failed is called when no one can answer from elsewhere, at most once. It must not be nil.
	Failed func(error)

	questions approval.OpenQuestions
	limits    runs.Limits
	served    runs.Questions // written once by Questions
	serving   sync.Once
	opened    sync.Once
	closed    func()

	mu sync.Mutex
	// questions that were announced or asked; closed when no one need wait for them
	known map[string]chan struct{}
}

// Approve asks. A question for which there is no one to ask passes; one that no one answers in
// time has timed out.
func (p *QuestionServer) Approve(ctx context.Context, r *approval.Request) (approval.Decision, error) {
	p.state(r.ID)
	defer p.settle(r.ID)
	if p.Before != nil {
		if d, err := p.Alone(p.Before).Approve(ctx, r); !errors.Is(err, approval.ErrPass) {
			return d, err
		}
	}
	ctx, pass := context.WithCancelCause(ctx)
	defer pass(nil)
	listens := p.open() // before the terminal shows the question: who sees it there can answer it elsewhere
	beside := approval.Func(func(ctx context.Context, r *approval.Request) (approval.Decision, error) {
		p.posted(ctx, r.ID, nil)
		d, err := p.Beside.Approve(ctx, r)
		if !errors.Is(err, approval.ErrPass) {
			return d, err
		}
		d, err = p.elsewhere(ctx, r, listens)
		if errors.Is(err, approval.ErrPass) {
			pass(err)
		}
		return d, err
	})
	return approval.First(beside, &p.questions).Approve(ctx, r)
}

// noConsole is why a question is denied that only a console could answer.
const noConsole = "no console is open that could answer; start one with sallyport console, or use " +
	"--approval-wait DUR"

// elsewhere returns when the time for an answer from elsewhere is over, or ctx has ended. It passes if there
// is none.
func (p *QuestionServer) elsewhere(ctx context.Context, r *approval.Request, listens bool,
) (approval.Decision, error) {
	wait := p.Wait
	// It would be denied otherwise before anyone elsewhere sees it.
	if r.Waiting && (wait > 0 || !p.BeforeIsFinal) {
		wait = time.Duration(r.WaitMS) * time.Millisecond
	}
	var console *openedConsole
	var gone <-chan struct{} // never, where the question waits without a console as well
	if p.InConsole && listens {
		if console = findConsole(ctx); console != nil {
			defer console.close()
		}
	}
	switch {
	case wait > 0:
	case console != nil:
		wait, gone = consoleWait, console.gone
	case p.InConsole:
		return approval.Decision{Source: approval.FromConfig, Message: noConsole}, nil
	default:
		return approval.Decision{}, approval.ErrPass
	}
	p.limits.Set(r.ID, time.Now().Add(wait))
	defer p.limits.Set(r.ID, time.Time{})
	if listens && p.Waits != nil {
		p.Waits(r, wait, console != nil)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return approval.Decision{Answer: approval.TimedOut, Source: approval.FromConfig}, nil
	case <-gone:
		return approval.Decision{Source: approval.FromConfig,
			Message: "the console was closed, and no other one is open"}, nil
	case <-ctx.Done():
		return approval.Decision{}, context.Cause(ctx)
	}
}

// Alone returns an Approver that asks a, which may take long: others who look for the question do
// not wait for it.
func (p *QuestionServer) Alone(a approval.Approver) approval.Approver {
	return approval.Func(func(ctx context.Context, r *approval.Request) (approval.Decision, error) {
		p.settle(r.ID)
		return a.Approve(ctx, r)
	})
}

// Announce says that a question will be asked: from now on others can connect, and who wants to
// see or answer it waits until it is asked.
func (p *QuestionServer) Announce(id string) {
	p.state(id)
	p.open()
}

// state returns the channel that is closed when a question is settled.
func (p *QuestionServer) state(id string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]chan struct{}{}
	}
	if p.known[id] == nil {
		p.known[id] = make(chan struct{})
	}
	return p.known[id]
}

// settle says that a question is over, or that another approver has it and may take long. An
// announcement may come later.
func (p *QuestionServer) settle(id string) {
	settled := p.state(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-settled:
	default:
		close(settled)
	}
}

// await returns when each question that was announced is asked or settled, or ctx ends.
func (p *QuestionServer) await(ctx context.Context) {
	p.mu.Lock()
	known := maps.Clone(p.known)
	p.mu.Unlock()
	for id, settled := range known {
		p.posted(ctx, id, settled)
	}
}

// posted returns when a question is asked, or settled, or ctx ends.
func (p *QuestionServer) posted(ctx context.Context, id string, settled <-chan struct{}) {
	for {
		changed := p.questions.Changed()
		if slices.ContainsFunc(p.questions.Pending(),
			func(r *approval.Request) bool { return r.ID == id }) {
			return
		}
		select {
		case <-changed:
		case <-settled:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Questions returns what a server needs to have clients answer, the same of all calls.
func (p *QuestionServer) Questions() *runs.Questions {
	p.serving.Do(func() {
		p.served = runs.Questions{Open: &p.questions, Await: p.await, Limits: &p.limits,
			Remembered: p.Remembered, Revoke: p.Revoke}
	})
	return &p.served
}

// open begins to listen, and reports whether others can answer.
func (p *QuestionServer) open() bool {
	p.opened.Do(func() {
		l, err := listenIn(socketsDir)
		if err != nil {
			p.Failed(err)
			return
		}
		p.closed = Questions(l, p.Questions())
	})
	return p.closed != nil
}

// Close ends listening. No question may be open, and none may follow.
func (p *QuestionServer) Close() {
	p.opened.Do(func() {})
	if p.closed != nil {
		p.closed()
	}
}
