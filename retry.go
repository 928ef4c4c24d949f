// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/judge"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// widen asks, after an attempt that was denied something and failed, whether the command may be
// run again with the least that allows it. It gives the command what was approved. The error
// says that ctx has ended.
func (x *execution) widen(ctx context.Context, a *attempt) (again bool, err error) {
	if !x.repeats(a) {
		return false, nil
	}
	evidence, required := x.missing(a)
	if len(required) == 0 || x.runner.bars(required...) {
		return false, nil
	}
	q, before := x.question(approval.KindAccess, "it failed, and was denied what it may need", required)
	q.Denials = evidence
	wanted, release := a.wanted(ctx)
	defer release()
	d, err := x.ask(wanted, x.approver(true), q)
	switch {
	case errors.Is(err, approval.ErrPass):
		return false, nil
	case wanted.Err() != nil && ctx.Err() == nil:
		x.noted = append(x.noted, "it was not run again: the session was terminated while the question was open")
		return false, nil
	case err != nil:
		return false, err
	case !d.Answer.Approves():
		x.noted = append(x.noted, "it was not run again: "+strings.Join(strings.Fields(d.Refusal()), " "))
		return false, nil
	}
	what := x.changed(before, q)
	if what == "" && !x.task.rewind() {
		what = "its input"
	}
	if what != "" {
		x.noted = append(x.noted, "it was not run again: "+what+" changed while the question was open")
		return false, nil
	}
	if err := x.open(q.Requires); err != nil {
		x.noted = append(x.noted, "it was not run again: "+err.Error())
		return false, nil // the first result stays, with the notice
	}
	x.runner.events.emit(x.id, x.attempts+1, event.Retrying{Reason: "approved", Added: q.Requires})
	return true, nil
}

// wanted returns a context that ends with ctx, and when the owner of a session terminates it.
func (a *attempt) wanted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-a.stopped:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// missing returns the denials that are facts and matter, and what would allow them: the least
// grants, or leaving the sandbox where no grant helps and the judge lets that be asked.
func (x *execution) missing(a *attempt) (evidence []sandbox.Denial, required []string) {
	var grants []sandbox.Grant
	for _, d := range facts(a.denials) {
		if d.NoGrant {
			continue
		}
		evidence = append(evidence, d)
		if gs, ok := sandbox.ParseGrants(d.Grant); ok {
			grants = append(grants, gs...)
		}
	}
	if len(grants) > 0 {
		return evidence, approval.Requirements(false, grants)
	}
	if len(evidence) == 0 || x.retry < judge.RetryOutside {
		return nil, nil
	}
	return evidence, []string{approval.Outside}
}

// facts returns the denials that are facts and matter.
func facts(denials []sandbox.Denial) []sandbox.Denial {
	return slices.DeleteFunc(slices.Clone(denials), func(d sandbox.Denial) bool { return !d.Source.Evidence() || d.Harmless != "" })
}

// outcome reports how the sandbox bore on a run, if it did.
func (x *execution) outcome(a *attempt) {
	o := event.SandboxOutcome{Initial: a.duration, Mode: a.policy.Name(), Level: a.exit.Sandbox.Level}
	denied := facts(a.denials)
	switch {
	case x.first != nil:
		o.Outcome, o.Initial, o.Escalated = event.OutcomeEscalated, x.first.Duration, a.duration
		denied = facts(x.first.denials)
	case a.end == EndTimedOut:
		o.Outcome = event.OutcomeTimedOut
	case a.end == EndSignaled:
		o.Outcome = event.OutcomeSignal
	case a.end == EndExited && a.exit.Code != 0 && len(denied) > 0:
		o.Outcome = event.OutcomeDenied
	default:
		return
	}
	for _, d := range denied {
		o.Evidence = append(o.Evidence, d.Source)
	}
	slices.Sort(o.Evidence)
	o.Evidence = slices.Compact(o.Evidence)
	x.emit(o)
}

// An inputStart is where the input of a command began.
type inputStart struct {
	ok     bool // it can be given once more
	file   *os.File
	offset int64
}

// startOf notes where the input of a command begins. What is read from a pipe is gone; the keys
// of a terminal are typed anew.
func startOf(c *Cmd) inputStart {
	switch f := c.Stdin.(type) {
	case nil:
		return inputStart{ok: true}
	default:
		return inputStart{ok: c.TTY != nil}
	case *os.File:
		info, err := f.Stat()
		if err != nil {
			return inputStart{}
		}
		if info.Mode()&os.ModeCharDevice != 0 {
			return inputStart{ok: true}
		}
		at, err := f.Seek(0, io.SeekCurrent)
		return inputStart{err == nil && info.Mode().IsRegular(), f, at}
	}
}

// keys are what is typed on the terminal of a command: one reader serves all of its attempts, so
// that a key which is read between two of them reaches the second.
type keys struct {
	next chan executor.Process // the one that gets them from now on
	over chan struct{}         // closed at the end of the run
}

// typing has what is typed reach p from now on.
func (x *execution) typing(p executor.Process, input io.Reader) {
	if x.keys == nil {
		x.keys = &keys{make(chan executor.Process, 1), make(chan struct{})}
		go x.keys.copy(input)
	}
	x.keys.next <- p
}

// copy types what is read, until the end of the run or when a blocked Read returns after it.
func (k *keys) copy(input io.Reader) {
	var buf [4 << 10]byte
	p := k.process()
	for p != nil {
		n, err := input.Read(buf[:])
		for rest := buf[:n]; p != nil && len(rest) > 0; {
			done, failed := writeOnly{p}.Write(rest)
			if rest = rest[done:]; failed != nil {
				p = k.process()
			}
		}
		for err != nil && p != nil {
			_ = p.CloseInput()
			p = k.process()
		}
	}
}

// process waits for the next process to type to; nil is the end.
func (k *keys) process() executor.Process {
	select {
	case p := <-k.next:
		return p
	case <-k.over:
		return nil
	}
}

// rewind sets the input back to where it began.
func (c command) rewind() bool {
	if c.input0.file == nil {
		return true
	}
	_, err := c.input0.file.Seek(c.input0.offset, io.SeekStart)
	return err == nil
}

// remember has a rule count for this Runner and its parents, and for later ones if Remember keeps it.
func (r *Runner) remember(rule []string) error {
	var line string
	for at := r; at != nil; at = at.Parent {
		set, text, err := at.rules().Amend(rule)
		if err != nil {
			return err
		}
		line = text
		at.mu.Lock()
		at.amended = set
		at.mu.Unlock()
	}
	return r.Remember(slices.Clone(rule), line)
}
