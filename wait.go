// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// DefaultYield is the longest wait of an Until that names none.
const DefaultYield = 10 * time.Second

// An Until says what ends a wait for a session. The condition that holds first ends it,
// and the end of the command always does. An Until with no condition but a time waits for
// Input if the session has a terminal and the executor can tell; the zero Until waits 10 seconds.
type Until struct {
	// For is the longest wait; 0 means 10 seconds, negative means no limit.
	For time.Duration
	// Input ends the wait when the command waits for input. Where the executor cannot tell, the wait
	// is an *UntilError at once that is [errors.ErrUnsupported].
	Input bool
	// FirstOutput ends it with the first byte since the last reply, and Bytes with that
	// many bytes; 0 means no such condition.
	FirstOutput bool
	Bytes       uint64
	// Match ends it when the output since the last reply matches; nil means no such
	// condition. What follows a match counts for the next wait as well, and so does output
	// in which a wait for a match found none. Control sequences are taken out of the output
	// before, unless Raw is set, and a match is at most 64 KiB long.
	Match *regexp.Regexp
	Raw   bool
	// Quiet ends it when there was no output for that long, since the wait began; 0 means
	// no such condition.
	Quiet time.Duration
	// From is the offset of the output from which on FirstOutput, Bytes and Match count, in
	// place of the last reply, such as Reply.Next or 0. Such a wait takes no output away:
	// its Reply has none. Nil means the last reply.
	From *uint64
	// Port ends it when the command listens on a TCP port. It is an error as with Input.
	Port bool
	// ExitOnly says that only the end of the command and the time end the wait, also on
	// a terminal. It excludes the other conditions.
	ExitOnly bool
}

// plain reports whether there is no condition but a time.
func (u *Until) plain() bool {
	return !u.Input && !u.FirstOutput && u.Bytes == 0 && u.Match == nil && u.Quiet == 0 && !u.Port
}

// A Reason says what ended a wait.
type Reason string

// The reasons, as in JSON.
const (
	ReasonExited   Reason = "exited"     // the command has ended; see Reply.Result
	ReasonDeadline Reason = "deadline"   // the time was over
	ReasonInput    Reason = "input_wait" // the command waits for input
	ReasonPassword Reason = "password"   // it waits for input that it does not show
	ReasonOutput   Reason = "output"     // there was output
	ReasonBytes    Reason = "bytes"      // there was as much output as asked for
	ReasonMatch    Reason = "match"      // the output matched
	ReasonQuiet    Reason = "idle"       // there was no output any more
	ReasonPort     Reason = "port"       // the command listens on a port
)

// A Reply is the result of a wait.
type Reply struct {
	// Output is the output since the last reply, both streams in order of arrival, as far as
	// [Retention] keeps it. No other Reply has it. It is empty with Until.From.
	Output Output
	// Offset is that of the end of the output of the session so far, in bytes.
	Offset uint64
	// Next is the offset from which a next wait goes on: the end of the match for
	// ReasonMatch.
	Next   uint64
	Reason Reason
	// Input says which program waits, for ReasonInput and ReasonPassword.
	Input *executor.InputWait
	// Port is the one of ReasonPort.
	Port int
	// Result is what Run would have returned, for ReasonExited.
	Result *Result
	// Elapsed is how long the wait took.
	Elapsed time.Duration
	// Notices are sentences for the user of the session.
	Notices []string
}

// check refuses an invalid Until.
func (u *Until) check() error {
	if u.Quiet < 0 {
		return &UntilError{Field: "Quiet", Reason: "it is negative; use 0 for no such condition"}
	}
	if u.ExitOnly && !u.plain() {
		return &UntilError{Field: "ExitOnly", Reason: "another condition is set too; leave one of them out"}
	}
	return nil
}

// An UntilError reports an invalid Until.
type UntilError struct {
	Field  string // of Until
	Reason string // a clause, with the fix
	Err    error  // of the executor, for a condition that it does not support; else nil
}

// Unwrap returns Err.
func (e *UntilError) Unwrap() error { return e.Err }

// Error returns one sentence that names the field.
func (e *UntilError) Error() string { return "sallyport: Until." + e.Field + ": " + e.Reason }

// Await waits until a condition of u holds and returns the output since the last reply. The times of u stand
// still while a question is open for whose answer the command waits.
// Several waits at once each end by their own conditions, which count from where they
// began; the one that ends first has the output. The end of ctx ends the wait with an
// error; the output stays for the next reply.
func (s *Session) Await(ctx context.Context, u Until) (*Reply, error) {
	return s.Send(ctx, nil, u)
}

// Yield waits for d, or until the command waits for input or has ended, and returns the
// output since the last reply. It is the usual wait for a terminal; Await has other
// conditions.
func (s *Session) Yield(ctx context.Context, d time.Duration) (Output, error) {
	if d <= 0 {
		d = time.Nanosecond
	}
	r, err := s.Await(ctx, Until{For: d, Input: true})
	if errors.Is(err, errors.ErrUnsupported) { // d is the condition that counts
		r, err = s.Await(ctx, Until{For: d, ExitOnly: true})
	}
	if err != nil {
		return Output{}, err
	}
	return r.Output, nil
}

// Send writes p and then waits as Await does, with no other Send of text meanwhile. It is
// no error when the command ends meanwhile: the Reply has its Result. After any other
// error of Write it does not wait; but a command that has closed its input gets 2 seconds
// to end.
func (s *Session) Send(ctx context.Context, p []byte, u Until) (*Reply, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	if err := u.check(); err != nil {
		return nil, err
	}
	if err := s.tells(&u); err != nil {
		return nil, err
	}
	w := s.newWait(&u)
	s.use()
	if len(p) > 0 {
		select {
		case s.sendTurn <- struct{}{}:
		case <-ctx.Done():
			return nil, waitCanceled(ctx)
		}
		defer func() { <-s.sendTurn }()
		w = s.newWait(&u)
		n, err := s.write(ctx, p)
		if errors.Is(err, io.ErrClosedPipe) {
			soon, cancel := context.WithTimeout(ctx, inputPatience)
			_, _ = s.Wait(soon)
			cancel()
			if s.over() {
				err = os.ErrProcessDone
			}
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return nil, fmt.Errorf("%w (%d of %d bytes were taken)", err, n, len(p))
		}
	}
	defer s.use()
	w.begin = time.Now()
	return w.await(ctx)
}

// tells refuses a wait for what the executor cannot tell: it would be in vain.
func (s *Session) tells(u *Until) error {
	if !u.Input && !u.Port || s.over() {
		return nil
	}
	field, err := process.Tells(s.attempt.Load().process, u.Input, u.Port)
	if err == nil {
		return nil
	}
	return &UntilError{Field: field,
		Reason: "this executor cannot tell; leave it out and wait for output or for the end", Err: err}
}

func waitCanceled(ctx context.Context) error {
	return fmt.Errorf("sallyport: the wait was canceled: %w", context.Cause(ctx))
}

// A sessionWait is one call of Await in progress.
type sessionWait struct {
	s     *Session
	u     *Until
	begin time.Time
	from  uint64 // FirstOutput and Bytes count from there
	next  uint64 // Match counts from there, or with found a match ends there
	found bool
	match *output.Matcher // nil without Match
	asked *attempt        // that of input and port
	input chan *executor.InputWait
	port  chan int
}

// newWait returns a wait that counts from now on.
func (s *Session) newWait(u *Until) *sessionWait {
	w := &sessionWait{s: s, u: u}
	s.mu.Lock()
	w.from, w.next = s.total-s.pending.Total(), s.matched
	s.mu.Unlock()
	if u.From != nil {
		w.from, w.next = *u.From, *u.From
	}
	if u.Match != nil {
		w.match = output.NewMatcher(u.Match, u.Raw, w.next)
	}
	return w
}

// await waits.
func (w *sessionWait) await(ctx context.Context) (*Reply, error) {
	s, u := w.s, w.u
	if s.execution.cmd.TTY != nil && !u.ExitOnly && u.plain() {
		u.Input = true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	longest := u.For
	if longest == 0 {
		longest = DefaultYield
	}
	deadline := make(chan struct{})
	if longest > 0 { // it stands still while a question is open
		defer s.execution.waits.Start(longest, func() { close(deadline) })()
	}
	quietTimer := time.NewTimer(time.Hour)
	defer quietTimer.Stop()
	reply := &Reply{}
	for {
		changed, left := w.check(ctx, reply)
		if reply.Reason != "" {
			return w.finish(ctx, reply), nil
		}
		w.inspect(ctx)
		var quiet <-chan time.Time
		if left > 0 {
			quietTimer.Reset(left)
			quiet = quietTimer.C
		}
		select {
		case <-s.done:
			reply.Reason = ReasonExited
		case <-changed:
		case <-quiet:
		case reply.Input = <-w.input:
			reply.Reason = ReasonInput
			if reply.Input.Kind == executor.InputPassword {
				reply.Reason = ReasonPassword
			}
		case reply.Port = <-w.port:
			reply.Reason = ReasonPort
		case <-deadline:
			reply.Reason = ReasonDeadline
		case <-ctx.Done():
			return nil, waitCanceled(ctx)
		}
		if reply.Reason != "" {
			return w.finish(ctx, reply), nil
		}
	}
}

// inspect starts the inspections of the process that the conditions need, once for each attempt.
func (w *sessionWait) inspect(ctx context.Context) {
	s, a := w.s, w.s.attempt.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() || w.asked == a {
		return
	}
	p := a.process
	w.asked = a
	if w.u.Input {
		w.input = process.Ask(&s.inspections,
			func() (*executor.InputWait, error) { return p.AwaitInput(ctx) })
	}
	if w.u.Port {
		w.port = process.Ask(&s.inspections, func() (int, error) { return p.AwaitPort(ctx, nil) })
	}
}

// check sets the reason if a condition on the output holds. Otherwise it returns a channel
// that the next output closes, and how long there must be no output for the command to
// count as quiet; 0 means that it cannot.
func (w *sessionWait) check(ctx context.Context, reply *Reply) (changed <-chan struct{}, left time.Duration) {
	s := w.s
	if s.over() {
		reply.Reason = ReasonExited
		return nil, 0
	}
	s.mu.Lock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	changed = s.changed
	total, last := s.total, s.last
	s.mu.Unlock()
	return changed, w.met(ctx, reply, total, last)
}

// met sets the reason if a condition on the output holds, of which there are total bytes, the
// last one of that time. It returns how long there must be no output for the command to count as
// quiet.
func (w *sessionWait) met(ctx context.Context, reply *Reply, total uint64,
	last time.Time) (left time.Duration) {
	u, n := w.u, max(total, w.from)-w.from
	if w.match != nil {
		w.next, w.found = w.match.Look(ctx, w.s.output(), total)
	}
	switch {
	case w.found:
		reply.Reason = ReasonMatch
	case u.Bytes > 0 && n >= u.Bytes:
		reply.Reason = ReasonBytes
	case u.FirstOutput && n > 0:
		reply.Reason = ReasonOutput
	case u.Quiet > 0 && !w.s.execution.waits.Paused():
		if last.Before(w.begin) {
			last = w.begin
		}
		if left = u.Quiet - time.Since(last); left <= 0 {
			reply.Reason = ReasonQuiet
		}
	}
	return left
}

// finish completes the reply with the pending output. Conditions on that come before all but
// the end, also when it came in the same moment.
func (w *sessionWait) finish(ctx context.Context, r *Reply) *Reply {
	s := w.s
	over := s.over() // all output is there then
	s.mu.Lock()
	total, last := s.total, s.last
	s.mu.Unlock()
	w.met(ctx, r, total, last) // most of the work without the lock
	spill := s.SpillErr()
	s.mu.Lock()
	w.met(ctx, r, s.total, s.last)
	if over {
		r.Reason, r.Result = ReasonExited, s.result
	}
	r.Offset, r.Next = s.total, w.next
	if r.Reason == ReasonOutput || r.Reason == ReasonBytes || w.u.Match == nil && w.u.From == nil {
		r.Next = s.total
	}
	if w.u.From == nil {
		r.Output = newOutput(s.pending.Drain())
		s.matched = max(s.matched, r.Next)
	}
	if spill != nil && !s.toldSpill {
		s.toldSpill = true
		r.Notices = append(r.Notices, spill.Error())
	}
	s.mu.Unlock()
	if r.Reason != ReasonInput && r.Reason != ReasonPassword {
		r.Input = nil
	}
	if r.Reason != ReasonPort {
		r.Port = 0
	}
	r.Elapsed = time.Since(w.begin)
	if n := s.runner.sessions.notice(s.runner.MaxSessions); n != "" {
		r.Notices = append(r.Notices, n)
	}
	return r
}
