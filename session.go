// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Session is a command that runs while its caller does something else, takes input and
// can be waited for again and again. Its methods may be called from several goroutines at
// once; calls of [Session.Send] with text take turns. Close it when it is no longer needed.
type Session struct {
	id        string
	runner    *Runner
	place     *process.Place[*Session]
	execution *execution
	attempt   atomic.Pointer[attempt] // the last one; nil before the first
	started   time.Time
	done      chan struct{} // closed when everything is over
	result    *Result       // written before done is closed
	err       error

	sendTurn chan struct{} // holds a token while a call writes and then waits
	input    *process.InputQueue

	inspections sync.WaitGroup // of the process; added to under mu while not over
	replies     chan []byte    // of the terminal to the program's queries; nil without a screen
	replied     chan struct{}  // closed when no reply is typed any more

	mu        sync.Mutex
	used      time.Time
	pending   *output.Buffer // output since the last reply
	total     uint64         // bytes of output
	matched   uint64         // the offset from which on the next wait looks for a match
	last      time.Time      // of the last byte
	changed   chan struct{}  // closed by the next output; nil while no call waits
	screen    *text.Screen   // nil for none
	size      *Size          // of the terminal since it was changed; nil before
	toldSpill bool           // a reply had the notice about SpillErr
}

// Start starts a command and returns as soon as it runs. The end of ctx keeps the command
// from being started and does not end one that runs: a session lives until its command
// ends, or it, or the Runner, is closed. Start keeps no reference to c. Cmd.Stdin must be
// nil; a session takes input through [Session.Write] if it has a TTY or OpenStdin. The
// errors are those of Run for a command that does not run, or of which that is not known
// ([ErrEndUnknown]), and *TooManySessionsError.
func (r *Runner) Start(ctx context.Context, c *Cmd) (*Session, error) { return r.start(ctx, c, nil) }

// start is Start in a shared sandbox, or with nil in one of the command's own.
func (r *Runner) start(ctx context.Context, c *Cmd, in *Sandbox) (*Session, error) {
	switch {
	case ctx == nil:
		return nil, ErrNoContext
	case c == nil:
		return nil, c.check()
	case c.Stdin != nil:
		return nil, &CmdError{Field: "Stdin",
			Reason: "a session does not read it; set OpenStdin or TTY and use Session.Write"}
	}
	c = c.clone()
	life, leaveRunner, err := r.enter(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	leave, release := leaveRunner, func() {}
	var s *Session
	defer func() {
		if s == nil { // also where something of the caller panics
			release()
			leave()
		}
	}()
	leaveSandbox, err := in.enter()
	if err != nil {
		return nil, err
	}
	leave = func() {
		leaveSandbox()
		leaveRunner()
	}
	place, id, err := r.sessions.reserve(r.MaxSessions, r.sequentialIDs)
	if err != nil {
		return nil, err
	}
	release = func() { place.End(0) }
	if s, err = r.newSession(ctx, c, id); err != nil {
		return nil, err
	}
	s.place = place
	s.execution.sandbox = in
	running := make(chan struct{})
	go func() {
		defer leave()
		s.run(ctx, life, running)
	}()
	select {
	case <-running:
	case <-s.done:
	}
	if s.attempt.Load() == nil {
		return nil, s.err
	}
	return s, nil
}

// defaultSpill is Runner.Spill when that is 0.
const defaultSpill = 64 << 20

// newSession returns a session whose command has not been started.
func (r *Runner) newSession(ctx context.Context, c *Cmd, id string) (*Session, error) {
	x, err := r.newExecution(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Session{
		id: id, runner: r, execution: x, started: x.start, used: x.start, done: make(chan struct{}),
		sendTurn: make(chan struct{}, 1),
	}
	s.input = process.NewInputQueue(func() process.InputTaker { return s.attempt.Load().process },
		c.TTY != nil, inputPatience)
	if x.again = s.reset; c.TTY == nil && !c.OpenStdin {
		s.input.End()
	} else {
		x.queue = s.input
	}
	x.resumed = s.resume
	x.session, x.pipe, x.onOutput = true, c.OpenStdin && c.TTY == nil, s.onOutput
	x.retain = executor.Retention{Memory: c.Retention.Bytes, File: cmp.Or(r.Spill, defaultSpill),
		Open: c.Retry}
	if x.retain.Memory <= 0 {
		x.retain.Memory = output.DefaultBytes
	}
	s.pending = output.NewBuffer(x.retain.Memory)
	if c.Screen {
		size := c.TTY.OrUsual()
		s.screen = text.NewScreen(int(size.Cols), int(size.Rows))
		s.replies, s.replied = make(chan []byte, maxReplies), make(chan struct{})
	}
	return s, nil
}

// run executes the command to its end. It closes running once the process runs, and
// done when everything is over; the attempt stays nil if the process was not started.
func (s *Session) run(ctx, life context.Context, running chan<- struct{}) {
	// The end of either context prevents the start.
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	detach := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	defer detach()
	s.result, s.err = s.execution.execute(both, life, func(a *attempt) {
		s.execution.retain.After = a.process.Output() // for a second attempt
		if old := s.attempt.Swap(a); old != nil {
			s.input.Release()
			s.wake() // waits ask the new process
			if old.asked() == EndCanceled {
				a.stop(EndCanceled) // the session was terminated meanwhile
			}
			return
		}
		_, _ = s.place.Enter(s.id, s) // a number that was never given, in a table that is never closed
		if s.replies != nil {
			go s.reply()
		}
		close(running)
	})
	if s.attempt.Load() == nil {
		s.place.End(0)
		close(s.done)
		return
	}
	if out, ok := s.output().(interface{ End() }); ok {
		out.End()
	}
	s.input.Close()
	s.place.End(0)
	s.mu.Lock()
	close(s.done) // no inspection begins after this
	s.mu.Unlock()
	if s.replied != nil {
		<-s.replied
	}
	s.inspections.Wait()
}

// onOutput takes output that the executor has retained, and how many bytes after it are omitted.
func (s *Session) onOutput(p []byte, omitted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.pending.Write(p) // it does not fail
	s.pending.Omit(omitted)
	s.total += uint64(len(p) + omitted)
	s.last = time.Now()
	s.wakeLocked()
	if s.screen == nil {
		return
	}
	_, _ = s.screen.Write(p) // nor does this
	if r := s.screen.Replies(); len(r) > 0 {
		select {
		case s.replies <- r:
		default: // the program asks and reads no replies
		}
	}
}

// wake ends the pauses of waits.
func (s *Session) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeLocked()
}

// resume has waits for a quiet command begin anew: no question is open any more.
func (s *Session) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	s.wakeLocked()
}

func (s *Session) wakeLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// reset gives another attempt the terminal that it expects: of the size that it has by now, with nothing
// on it.
func (s *Session) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size != nil {
		*s.execution.cmd.TTY = *s.size
	}
	if s.screen != nil {
		size := s.execution.cmd.TTY.OrUsual()
		s.screen = text.NewScreen(int(size.Cols), int(size.Rows))
	}
}

// maxReplies is how many replies of the terminal wait for a program that does not read.
const maxReplies = 16

// reply types the replies of the terminal to what the program asks it.
func (s *Session) reply() {
	defer close(s.replied)
	for {
		select {
		case <-s.done:
			return
		case r := <-s.replies:
			_, _ = s.input.Answer(context.Background(), r) // a program that does not read gets no reply
		}
	}
}

// ID returns the identity of the session, a decimal number that the Runner gives only
// once.
func (s *Session) ID() string { return s.id }

// Info returns what a list of sessions shows of this one.
func (s *Session) Info() SessionInfo {
	s.mu.Lock()
	used := s.used
	s.mu.Unlock()
	x := s.execution
	info := SessionInfo{
		ID: s.id, Run: x.id, CallerID: x.callerID, Args: slices.Clone(x.args), Dir: x.dir,
		TTY:     x.cmd.TTY != nil,
		Started: s.started, LastUsed: used, Running: true, ExitCode: -1,
	}
	if s.over() {
		info.Running = false
		if s.result != nil {
			info.ExitCode, info.Signal = s.result.ExitCode, s.result.Signal
		}
	}
	return info
}

// over reports whether everything is over.
func (s *Session) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *Session) use() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
}

// Wait blocks until the command and its process tree have ended, and returns what Run
// would have returned; but that the session was terminated is no error, [Result.End] tells
// it. The end of ctx ends the wait only.
func (s *Session) Wait(ctx context.Context) (*Result, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		if !s.over() {
			return nil, waitCanceled(ctx)
		}
	}
	return s.result, s.err
}

// Terminate ends the command's process tree: it sends SIGTERM (before it SIGHUP on a
// terminal), and SIGKILL after Cmd.Grace. It waits for the end, and reports whether the
// command was alive. The output of the session can still be read.
func (s *Session) Terminate(ctx context.Context) (bool, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return false, err
	}
	if s.over() {
		return false, nil
	}
	s.stop()
	if _, err := s.Wait(ctx); !s.over() {
		return true, err
	}
	return true, nil
}

// stop ends the last attempt, and withdraws the question about a second one.
func (s *Session) stop() {
	for a := (*attempt)(nil); a != s.attempt.Load(); {
		a = s.attempt.Load()
		a.stop(EndCanceled)
	}
}

// TerminateAll terminates all sessions at once and returns how many were alive. The end
// of ctx ends the wait for them only.
func (r *Runner) TerminateAll(ctx context.Context) (int, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return 0, err
	}
	all, _ := r.sessions.List()
	for _, s := range all {
		s.stop()
	}
	for _, s := range all {
		if _, err := s.Terminate(ctx); err != nil {
			return len(all), err
		}
	}
	return len(all), nil
}

// Close ends the command as Terminate does and forgets the session: its identity is
// unknown from then on, and output that is only in its file can no longer be read. It may
// be called more than once.
func (s *Session) Close() error {
	s.stop()
	<-s.done
	s.place.Forget()
	s.drop()
	return nil
}

var _ io.WriteCloser = (*Session)(nil)
