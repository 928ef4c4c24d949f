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
)

// DefaultYield is how long a wait lasts at most when it does not say.
const DefaultYield = 10 * time.Second

// An Until says what a wait for a session ends with. Whatever comes first ends it, and
// the end of the command always does. One that names nothing but a time means Input
// for a session on a terminal; the zero Until waits 10 seconds.
type Until struct {
	// For is the longest wait; 0 means 10 seconds, negative without a bound.
	For time.Duration
	// Input ends the wait when the command waits for input, where that can be known.
	Input bool
	// FirstOutput ends it with the first byte since the last reply, Bytes with so many
	// of them, 0 for no such end.
	FirstOutput bool
	Bytes       uint64
	// Match ends it when what came since the last reply matches, as far as the last
	// 64 KiB of it go; nil for no such end.
	Match *regexp.Regexp
	// Quiet ends it when something came since the last reply, and then nothing for so
	// long; 0 for no such end.
	Quiet time.Duration
	// Port ends it when the command has begun to listen on a TCP port, where that can
	// be known.
	Port bool
	// ExitOnly says that nothing but the end of the command and the time is meant, also
	// on a terminal. It stands alone.
	ExitOnly bool
}

// plain reports whether nothing but a time is named.
func (u *Until) plain() bool {
	return !u.Input && !u.FirstOutput && u.Bytes == 0 && u.Match == nil && u.Quiet == 0 && !u.Port
}

// A Reason says what ended a wait.
type Reason string

// The reasons, as they stand in JSON.
const (
	ReasonExited   Reason = "exited"     // the command has ended; Reply.Result tells
	ReasonDeadline Reason = "deadline"   // the time was up
	ReasonInput    Reason = "input_wait" // it waits for input
	ReasonPassword Reason = "password"   // it waits for input that is not shown
	ReasonOutput   Reason = "output"     // something came
	ReasonBytes    Reason = "bytes"      // so many bytes came
	ReasonMatch    Reason = "match"      // the pattern was seen
	ReasonQuiet    Reason = "idle"       // nothing came any more
	ReasonPort     Reason = "port"       // it listens on a port
)

// A Reply is what a wait brought.
type Reply struct {
	// Output is what came since the last reply, both streams in order of arrival. It is
	// handed out once.
	Output Output
	// Offset is where the output of the session stands behind it, in bytes.
	Offset uint64
	Reason Reason
	// Input says who waits, with ReasonInput and ReasonPassword.
	Input *executor.InputWait
	// Port is the one of ReasonPort.
	Port int
	// Result is what Run would have returned, with ReasonExited.
	Result *Result
	// Elapsed is how long the wait took.
	Elapsed time.Duration
	// Notices are sentences for whoever uses the session.
	Notices []string
}

// check refuses what means nothing.
func (u *Until) check() error {
	if u.Quiet < 0 {
		return &UntilError{Field: "Quiet", Reason: "it is negative; use 0 for no such end"}
	}
	if u.ExitOnly && !u.plain() {
		return &UntilError{Field: "ExitOnly", Reason: "another end is named too; leave one of them out"}
	}
	return nil
}

// An UntilError is an Until that means nothing.
type UntilError struct {
	Field  string // of Until
	Reason string // a clause, with the mend
}

// Error returns one sentence that names the field.
func (e *UntilError) Error() string { return "sallyport: Until." + e.Field + ": " + e.Reason }

// Await waits until one of the conditions holds and returns what came since the last
// reply. Another Await, Send or Yield of the same session is waited for first. The end
// of ctx ends the wait with an error, and what came stays for the next reply.
func (s *Session) Await(ctx context.Context, u Until) (*Reply, error) {
	return s.Send(ctx, nil, u)
}

// Yield waits for d, or until the command waits for input or has ended, and returns
// what came since the last reply. It is the usual wait for a terminal; see Await for
// others.
func (s *Session) Yield(ctx context.Context, d time.Duration) (Output, error) {
	if d <= 0 {
		d = time.Nanosecond
	}
	r, err := s.Await(ctx, Until{For: d, Input: true})
	if err != nil {
		return Output{}, err
	}
	return r.Output, nil
}

// Send writes p and then waits as Await does, with nobody else's wait in between. When
// the command ends meanwhile that is no error: the Reply tells. With any other error of
// Write nothing is waited for, but that for 2 seconds it is seen whether a command that
// has nothing open to read from is ending.
func (s *Session) Send(ctx context.Context, p []byte, u Until) (*Reply, error) {
	if err := u.check(); err != nil {
		return nil, err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, awaitCanceled(ctx)
	}
	defer func() { <-s.turn }()
	s.use()
	if len(p) > 0 {
		n, err := s.write(ctx, p)
		if errors.Is(err, io.ErrClosedPipe) && s.ends(ctx) {
			err = os.ErrProcessDone
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return nil, fmt.Errorf("%w (%d of %d bytes were taken)", err, n, len(p))
		}
	}
	defer s.use()
	return s.await(ctx, &u)
}

// ends reports whether the command, whose end of the pipe is closed, is ending.
func (s *Session) ends(ctx context.Context) bool {
	timer := time.NewTimer(inputPatience)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	return s.over()
}

func awaitCanceled(ctx context.Context) error {
	return fmt.Errorf("sallyport: the wait was canceled: %w", context.Cause(ctx))
}

// A waiting is one wait under way.
type waiting struct {
	s     *Session
	u     *Until
	begin time.Time
	input chan *executor.InputWait
	port  chan int
}

// await waits; the caller has the turn.
func (s *Session) await(ctx context.Context, u *Until) (*Reply, error) {
	if s.task.cmd.TTY != nil && !u.ExitOnly && u.plain() {
		u.Input = true
	}
	w := &waiting{s: s, u: u, begin: time.Now()}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.inspect(ctx)
	length := u.For
	if length == 0 {
		length = DefaultYield
	}
	var deadline, quiet <-chan time.Time
	if length > 0 {
		timer := time.NewTimer(length)
		defer timer.Stop()
		deadline = timer.C
	}
	calm := time.NewTimer(time.Hour)
	defer calm.Stop()
	reply := &Reply{}
	for {
		changed, left := w.look(reply)
		if reply.Reason != "" {
			return w.finish(reply), nil
		}
		quiet = nil
		if left > 0 {
			calm.Reset(left)
			quiet = calm.C
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
			return nil, awaitCanceled(ctx)
		}
		if reply.Reason != "" {
			// What the output decides comes first, also where it came in the same moment.
			w.look(reply)
			return w.finish(reply), nil
		}
	}
}

// inspect has the process looked at, where that is asked for and can be done.
func (w *waiting) inspect(ctx context.Context) {
	s, p := w.s, w.s.attempt.process
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() {
		return
	}
	if w.u.Input {
		w.input = make(chan *executor.InputWait, 1)
		s.looks.Go(func() {
			if in, err := p.AwaitInput(ctx); err == nil {
				w.input <- in
			}
		})
	}
	if w.u.Port {
		w.port = make(chan int, 1)
		s.looks.Go(func() {
			if port, err := p.AwaitPort(ctx, nil); err == nil {
				w.port <- port
			}
		})
	}
}

// matchWindow is how much of the output a pattern is looked for in.
const matchWindow = 64 << 10

// look sets the reason if a condition holds that only the output decides. Else it
// returns what is closed with the next output, and how long nothing may come until the
// command counts as quiet, 0 for ever.
func (w *waiting) look(reply *Reply) (changed <-chan struct{}, left time.Duration) {
	s, u := w.s, w.u
	if s.over() {
		reply.Reason = ReasonExited
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.pending.Total()
	switch {
	case u.Match != nil && n > 0 && u.Match.Match(s.pending.Last(matchWindow)):
		reply.Reason = ReasonMatch
	case u.Bytes > 0 && n >= u.Bytes:
		reply.Reason = ReasonBytes
	case u.FirstOutput && n > 0:
		reply.Reason = ReasonOutput
	case u.Quiet > 0 && n > 0:
		if left = u.Quiet - time.Since(s.last); left <= 0 {
			reply.Reason = ReasonQuiet
		}
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed, left
}

// finish takes what came.
func (w *waiting) finish(r *Reply) *Reply {
	s := w.s
	if s.over() {
		r.Reason, r.Result = ReasonExited, s.result
	}
	if r.Reason != ReasonInput && r.Reason != ReasonPassword {
		r.Input = nil
	}
	if r.Reason != ReasonPort {
		r.Port = 0
	}
	s.mu.Lock()
	r.Output = newOutput(s.pending.Drain())
	r.Offset = s.total
	tell := !s.told
	s.mu.Unlock()
	if err := s.SpillErr(); err != nil && tell {
		s.told = true // whoever waits has the turn
		r.Notices = append(r.Notices, err.Error())
	}
	r.Elapsed = time.Since(w.begin)
	if n := s.runner.sessions.notice(s.runner.MaxSessions); n != "" {
		r.Notices = append(r.Notices, n)
	}
	return r
}
