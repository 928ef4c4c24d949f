// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/internal/screen"
)

// A Session is a command that goes on while its caller does something else, and is
// written to and asked again. Its methods may be called from several goroutines at
// once; what waits for the command ([Session.Await], [Session.Send], [Session.Yield]) is
// done one after the other. Close it when it is no longer needed.
type Session struct {
	id      string
	runner  *Runner
	task    *execution
	attempt *attempt
	started time.Time
	done    chan struct{} // closed when everything is over
	result  *Result       // written before done is closed
	err     error

	turn chan struct{} // holds a token while somebody waits for the command
	pen  chan struct{} // holds a token while somebody writes to it

	looks sync.WaitGroup // at the process; added to under mu while not over

	answers chan []byte   // to what the program asks its terminal; nil without a screen
	typed   chan struct{} // closed when none is typed any more

	mu       sync.Mutex
	used     time.Time
	pending  *output.Buffer // output since the last reply
	total    uint64         // bytes that came
	last     time.Time      // of the last byte
	changed  chan struct{}  // closed with the next output; nil while nobody waits
	finished bool           // CloseInput was called on a pipe
	view     *screen.Screen // nil for none
	told     bool           // why not all output is kept
}

// Start starts a command and returns as soon as it runs. The end of ctx keeps it from
// being started and does nothing to one that was, and c may be used again at once: a session lives until it ends by
// itself, is terminated or closed, or the Runner is. Cmd.Stdin must be nil; a session
// with a TTY or with OpenStdin is written to. What Run returns as an error for a
// command that does not run, Start does.
func (r *Runner) Start(ctx context.Context, c *Cmd) (*Session, error) {
	if c == nil {
		return nil, c.check()
	}
	if c.Stdin != nil {
		return nil, &CmdError{Field: "Stdin", Reason: "a session is written to; set OpenStdin or TTY and use Session.Write"}
	}
	c = c.clone()
	life, leave, err := r.enter(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	id, err := r.sessions.reserve(r.MaxSessions, r.sequentialIDs)
	if err != nil {
		leave()
		return nil, err
	}
	s, err := r.newSession(ctx, c, id)
	if err != nil {
		r.sessions.release()
		leave()
		return nil, err
	}
	running := make(chan struct{})
	go func() {
		defer leave()
		s.run(ctx, life, running)
	}()
	select {
	case <-running:
	case <-s.done:
	}
	if s.attempt == nil {
		return nil, s.err
	}
	return s, nil
}

// clone is for what outlives the call that it was given to: the caller may change its
// own.
func (c *Cmd) clone() *Cmd {
	own := *c
	own.Args, own.Env, own.Allow = slices.Clone(c.Args), slices.Clone(c.Env), slices.Clone(c.Allow)
	if c.TTY != nil {
		size := *c.TTY
		own.TTY = &size
	}
	return &own
}

// newSession makes a session whose command has not been started.
func (r *Runner) newSession(ctx context.Context, c *Cmd, id string) (*Session, error) {
	x, err := r.newExecution(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Session{
		id: id, runner: r, task: x, started: x.start, used: x.start,
		done: make(chan struct{}), turn: make(chan struct{}, 1), pen: make(chan struct{}, 1), pending: output.NewBuffer(output.DefaultBytes),
	}
	x.session, x.pipe, x.onOutput = true, c.OpenStdin && c.TTY == nil, s.hear
	x.retain = executor.Retention{Memory: c.Retention.Bytes, File: cmp.Or(r.Spill, DefaultSpill)}
	if x.retain.Memory <= 0 {
		x.retain.Memory = output.DefaultBytes
	}
	if c.Screen {
		size := c.TTY.OrUsual()
		s.view = screen.New(int(size.Cols), int(size.Rows))
		s.answers, s.typed = make(chan []byte, mostAnswers), make(chan struct{})
	}
	return s, nil
}

// DefaultSpill is the size of the file for the output of a session when Runner.Spill
// is 0, in bytes.
const DefaultSpill = 64 << 20

// SpillErr says why only a part of a long output is kept: there can be no file for what
// memory does not hold, or it takes no more. It is nil while all is well, and when
// Runner.Spill wants no file.
func (s *Session) SpillErr() error {
	err := s.output().Err()
	if err == nil {
		return nil
	}
	return fmt.Errorf("sallyport: only a part of a long output is kept: %w", err)
}

// output returns the whole output.
func (s *Session) output() executor.Output { return s.attempt.process.Output() }

// drop frees what is retained of the output.
func (s *Session) drop() {
	_ = s.output().Close() // the next process that needs a file removes what stays
}

// run executes the command to its end. It closes running once the process runs, and
// done when everything is over; the attempt stays nil if the process was not started.
func (s *Session) run(ctx, life context.Context, running chan<- struct{}) {
	// The end of either context keeps the command from being started.
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	detach := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	defer detach()
	s.result, s.err = s.task.execute(both, life, func(a *attempt) {
		s.attempt = a
		s.runner.sessions.settle(s)
		if s.answers != nil {
			go s.answer()
		}
		close(running)
	})
	if s.attempt == nil {
		s.runner.sessions.release()
		close(s.done)
		return
	}
	forgotten := s.runner.sessions.end(s)
	s.mu.Lock()
	close(s.done) // no look at the process begins after this
	s.mu.Unlock()
	if s.typed != nil {
		<-s.typed
	}
	s.looks.Wait()
	for _, f := range forgotten {
		f.drop()
	}
}

// hear takes output.
func (s *Session) hear(_ executor.Stream, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.pending.Write(p) // it cannot fail
	s.total += uint64(len(p))
	s.last = time.Now()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	if s.view == nil {
		return
	}
	_, _ = s.view.Write(p) // nor can this
	if a := s.view.Replies(); len(a) > 0 {
		select {
		case s.answers <- a:
		default: // it asks, and reads no answers
		}
	}
}

// mostAnswers is how many answers wait for a program that does not read.
const mostAnswers = 16

// answer types the answers of the terminal to what the program asks it.
func (s *Session) answer() {
	defer close(s.typed)
	for {
		select {
		case <-s.done:
			return
		case a := <-s.answers:
			_, _ = s.write(context.Background(), a) // a program that reads nothing gets no answer
		}
	}
}

// ID returns the identity of the session, a decimal number that the Runner never gives
// to another one.
func (s *Session) ID() string { return s.id }

// Info returns what a list of sessions shows of this one.
func (s *Session) Info() SessionInfo {
	s.mu.Lock()
	used := s.used
	s.mu.Unlock()
	info := SessionInfo{
		ID: s.id, Run: s.task.id, Args: slices.Clone(s.task.args), Dir: s.task.dir, TTY: s.task.cmd.TTY != nil,
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

// The reasons for which input is not taken, found with errors.Is.
var (
	// ErrInputClosed says that the command has no input that could be written to.
	ErrInputClosed = errors.New("sallyport: the session's input is closed; start it with a TTY or with OpenStdin to write to it")
	// ErrInputFull says that the command does not read: what it was sent before fills
	// the terminal or the pipe.
	ErrInputFull = errors.New("sallyport: the command does not read its input, which is full")
)

// inputPatience is how long a write waits for a command that does not read.
const inputPatience = 2 * time.Second

// Write writes to the command's input, or types on its terminal. It returns how many
// bytes were taken: all of them, or an error, which is ErrInputClosed,
// os.ErrProcessDone, or ErrInputFull when the command has read nothing for 2 seconds.
func (s *Session) Write(p []byte) (int, error) {
	s.use()
	return s.write(context.Background(), p)
}

// write is Write that ends with ctx.
func (s *Session) write(ctx context.Context, p []byte) (int, error) {
	if s.over() {
		return 0, os.ErrProcessDone
	}
	s.mu.Lock()
	closed := s.finished || !s.task.pipe && s.task.cmd.TTY == nil
	s.mu.Unlock()
	if closed {
		return 0, ErrInputClosed
	}
	sum := 0
	err := s.put(ctx, func() (int, error) {
		n, err := s.attempt.process.Write(p[sum:])
		sum += n
		return n, err
	})
	return sum, err
}

// put calls f, which writes, again and again as long as it gets on, and nobody else's
// meanwhile: there is one deadline for all of them, and input must not be torn apart.
func (s *Session) put(ctx context.Context, f func() (int, error)) error {
	select {
	case s.pen <- struct{}{}:
	case <-s.done:
		return os.ErrProcessDone
	case <-ctx.Done():
		return writeCanceled(ctx)
	}
	defer func() { <-s.pen }()
	p := s.attempt.process
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		_ = p.SetInputDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-cut // or else it could meet the next write
		}
	}()
	for {
		err := p.SetInputDeadline(time.Now().Add(inputPatience))
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return s.noInput()
		}
		// Behind the deadline that was set, so that the end of ctx cannot be missed.
		if ctx.Err() != nil {
			return writeCanceled(ctx)
		}
		n, err := f()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded) && (n > 0 || ctx.Err() != nil):
			continue // it reads, slowly; or nobody waits any more
		case errors.Is(err, os.ErrDeadlineExceeded):
			return ErrInputFull
		case errors.Is(err, io.ErrClosedPipe):
			return fmt.Errorf("%w: nobody has its other end open any more: %w", ErrInputClosed, io.ErrClosedPipe)
		case errors.Is(err, os.ErrClosed):
			return s.noInput()
		}
		return fmt.Errorf("sallyport: cannot write to the session: %w", err)
	}
}

func writeCanceled(ctx context.Context) error {
	return fmt.Errorf("sallyport: the write was canceled: %w", context.Cause(ctx))
}

// noInput says why there is no input any more.
func (s *Session) noInput() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished {
		return ErrInputClosed
	}
	return os.ErrProcessDone
}

// CloseInput ends the command's input. A terminal gets its end-of-file character, and
// can be written to afterwards; the error is ErrInputFull when that cannot be typed
// because the command has read nothing for 2 seconds. When the command has ended,
// there is nothing to do.
func (s *Session) CloseInput() error {
	s.use()
	if s.task.cmd.TTY != nil {
		err := s.put(context.Background(), func() (int, error) { return 0, s.attempt.process.CloseInput() })
		if errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		return err
	}
	s.mu.Lock()
	s.finished = true
	s.mu.Unlock()
	if err := s.attempt.process.CloseInput(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("sallyport: cannot end the session's input: %w", err)
	}
	return nil
}

// Signal sends a signal by number to the command's process group; on a terminal
// SIGINT, SIGQUIT and SIGTSTP go to the foreground group, as the keys do. It is
// os.ErrProcessDone when the command has ended.
func (s *Session) Signal(sig int) error {
	s.use()
	return s.attempt.process.Signal(sig)
}

// Interrupt is Signal with SIGINT, which has the same number everywhere.
func (s *Session) Interrupt() error {
	const sigint = 2
	return s.Signal(sigint)
}

// Resize changes the size of the terminal. It is os.ErrProcessDone when the command
// has ended, and an error that is errors.ErrUnsupported without a terminal.
func (s *Session) Resize(size Size) error {
	s.use()
	if s.task.cmd.TTY == nil {
		return fmt.Errorf("sallyport: the session has no terminal: %w", errors.ErrUnsupported)
	}
	if err := s.attempt.process.Resize(size); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view != nil {
		size = size.OrUsual()
		s.view.Resize(int(size.Cols), int(size.Rows))
	}
	return nil
}

// Wait blocks until the command has ended and nothing of it is left, and returns what
// Run would have returned; that it was terminated is no error, Result.End tells. The end of ctx ends the wait only.
func (s *Session) Wait(ctx context.Context) (*Result, error) {
	select {
	case <-s.done:
	case <-ctx.Done():
		if !s.over() { // what is known is not lost
			return nil, awaitCanceled(ctx)
		}
	}
	return s.result, s.err
}

// Terminate ends the command's whole tree: it is asked first (on a terminal by SIGHUP
// and SIGTERM, else by SIGTERM), and killed after Cmd.Grace. It waits until nothing is
// left, and reports whether the command was alive. The session can still be asked for
// what it printed.
func (s *Session) Terminate(ctx context.Context) (bool, error) {
	if s.over() {
		return false, nil
	}
	s.attempt.stop(EndCanceled)
	if _, err := s.Wait(ctx); !s.over() {
		return true, err
	}
	return true, nil
}

// TerminateAll ends the commands of all sessions, side by side, and returns how many
// there were. The end of ctx ends the wait for them only.
func (r *Runner) TerminateAll(ctx context.Context) (int, error) {
	t := &r.sessions
	t.mu.Lock()
	var all []*Session
	for _, s := range t.live {
		all = append(all, s)
	}
	t.mu.Unlock()
	for _, s := range all {
		s.attempt.stop(EndCanceled)
	}
	for _, s := range all {
		if _, err := s.Terminate(ctx); err != nil {
			return len(all), err
		}
	}
	return len(all), nil
}

// Close ends the command as Terminate does and forgets the session: its identity is
// not known any more. It may be called more than once.
func (s *Session) Close() error {
	s.attempt.stop(EndCanceled)
	<-s.done
	s.runner.sessions.forget(s)
	s.drop()
	return nil
}

var _ io.WriteCloser = (*Session)(nil)
