// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process follows a command that was started: it reads its output, writes its
// input, ends its process tree when asked, and knows when everything is over.
//
// Flow: [Open] opens the standard streams, the caller starts the command on them, and
// [Streams.Follow] returns a [Process]. One goroutine, the pump, reads the output of the
// command; another waits for the command. When the command has ended, its descendants
// may still hold the output streams: they are read for a short time, and then what is
// left of the tree is killed.
//
// The order across standard output and standard error is that of the reads, which tells
// writes apart that are some tens of microseconds apart. On Linux an [Order] tells in
// which order the streams took turns in between. A turn counts as one line, and the last
// turn of a stream as the rest. So lines that are written one at a time come in order,
// with rare exceptions; of several lines or parts of lines in one turn some may come late.
//
// The package knows nothing of sandboxes and policies, and does not decide why a command
// has to end.
//
// An [InputQueue] and [Feed] pass the input of a command to the processes of its attempts. A [Table] keeps
// what runs, and what has run for a while, by identity: sessions of a Runner, runs and processes of an
// exec-server, processes of the unified tools. What is in it is its owner's.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

const (
	// defaultGrace is the time between SIGTERM and SIGKILL when [Config] names none.
	defaultGrace = 2 * time.Second
	// endTime is how long the end of a tree is waited for that was stopped and killed.
	endTime = 500 * time.Millisecond
)

// ErrStillEnding is the error for a tree that was stopped and killed, and in which the kernel
// has not ended every process yet.
var ErrStillEnding = errors.New("processes were killed and still wait in the kernel, as for a slow disk; wait until ps does not list them any more")

// A Child is a started command and its process tree.
type Child interface {
	// Wait blocks until the command itself has ended. The code is 128+signal for a
	// command that a signal ended, and negative when it is not known because the tree was
	// killed first. With an error the command did not run.
	Wait() (code, signal int, err error)
	// WaitAll blocks until nothing of the tree is left. It may still block while Close is
	// called, when the command was stopped.
	WaitAll() error
	// Signal signals the command's process group, or every process of the tree.
	Signal(sig syscall.Signal, tree bool) error
	// Kill kills every process of the tree.
	Kill() error
	// Survivors returns the processes that are left. It is called once, after Wait.
	Survivors() []executor.Survivor
	// Terminal returns the master end of the command's terminal, which does not block;
	// nil without one. The Process closes it.
	Terminal() *os.File
	// Close frees what the Child holds, and adds to the end of the command what only it
	// knows. No method is called after it.
	Close(*executor.Exit) error
}

// A Config describes the streams of a command and its end. The zero Config reads from
// the null device and discards output.
type Config struct {
	// Stdin is given to the command as it is; nil is the null device, or with PipeStdin
	// a pipe for [Process.Write].
	Stdin     *os.File
	PipeStdin bool
	// Stdout and Stderr are given to the command as they are; nil is a pipe to Output.
	Stdout, Stderr *os.File
	// Terminal says that the command gets a terminal in place of the streams that are
	// not set here. Its output counts as standard output.
	Terminal bool
	// Output gets what the command writes, one call at a time. It must not keep p. While
	// it blocks, the command's writes block too. Nil discards.
	Output func(s executor.Stream, p []byte)
	// Typed is [executor.Spec.OnTyped].
	Typed func(p []byte, echo executor.Echo)
	// Order tells in which order the command writes to its two pipes. Nil means that of
	// the reads.
	Order *Order
	// Grace is the time between asking the tree to end and killing it; 0 is 2 seconds,
	// negative none.
	Grace time.Duration
	// Exited is called once when the command itself has ended, and Output has returned from
	// what was written before, as far as that can be known. It is not called when the end is
	// not known. Nil is not called.
	Exited func(code, signal int)
	// AwaitStreams says that after the end of the command its streams are read until they end,
	// or until Stop.
	AwaitStreams bool
}

// The errors of input and of terminals.
var (
	// ErrNoInput is returned for input to a command without a pipe or a terminal.
	ErrNoInput = errors.New("the process has no input that can be written to")
	// ErrNoTerminal is returned for a command without a terminal.
	ErrNoTerminal = fmt.Errorf("the process has no terminal: %w", errors.ErrUnsupported)
	// ErrLineTooLong is returned for input of which a terminal would discard a part.
	// Nothing of it was written.
	ErrLineTooLong = errors.New("a line of input is longer than the 4095 bytes that a terminal keeps for a program that reads whole lines; send shorter lines, or use a pipe")
)

// A Process is a command that was started. Its methods may be called from several
// goroutines at once.
type Process struct {
	child Child
	cfg   Config
	pump  pump
	stdin *os.File  // our end of the pipe; nil without one
	tty   *terminal // nil without one

	ended chan struct{} // closed when the command itself has ended
	hurry chan struct{} // closed by the first Stop
	done  chan struct{} // closed when everything is over
	exit  executor.Exit // written before done is closed, as is err
	err   error
	input pulse

	mu         sync.Mutex
	over       bool // the command has ended: it gets no more signals
	stopped    bool
	hurried    bool
	calls      sync.WaitGroup // calls of child's methods in progress; added to under mu while not over
	lastSignal syscall.Signal // of stop, which is such a call
}

// newProcess returns a Process that follow has yet to follow.
func newProcess(cfg Config, child Child, p pump, stdin *os.File) *Process {
	return &Process{
		child: child, cfg: cfg, pump: p, stdin: stdin, input: pulse{base: time.Now()},
		ended: make(chan struct{}), hurry: make(chan struct{}), done: make(chan struct{}),
	}
}

// follow follows the command to its end and the end of everything.
func (p *Process) follow() {
	defer close(p.done)
	x := &p.exit
	x.Code, x.Signal, p.err = p.child.Wait()
	p.mu.Lock()
	p.over = true
	x.Stopped = p.stopped
	p.mu.Unlock()
	close(p.ended)
	p.pump.commandEnded()
	if p.cfg.Exited != nil && p.err == nil {
		p.awaitDelivery()
		p.cfg.Exited(x.Code, x.Signal)
	}
	if p.cfg.AwaitStreams {
		select {
		case <-p.pump.eof():
		case <-p.hurry:
		}
	}

	x.StreamsLeftOpen = !drain(p.pump, p.hurry)
	x.Survivors = p.child.Survivors()
	_ = p.child.Kill() // WaitAll tells when it fails
	if err := p.waitAll(); err != nil {
		p.err = fmt.Errorf("cannot tell whether the process tree has ended: %w", err)
	}
	p.pump.finish()
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	p.calls.Wait()
	if p.tty != nil {
		_ = p.tty.file.Close()
	}
	_ = p.child.Close(x)
	x.LastSignal = int(p.lastSignal)
}

// awaitDelivery waits until Config.Output has returned from what was written until now. It
// waits for the end of the output instead while other processes go on writing, and no longer
// when Stop is called.
func (p *Process) awaitDelivery() {
	for {
		next, busy := p.pump.next(), p.pump.busy()
		if p.pump.delivered() {
			return
		}
		select {
		case <-p.pump.eof():
			return
		case <-p.hurry:
			return
		case <-next:
		case <-busy:
		}
	}
}

// waitAll waits for the end of a tree that was killed: for endTime at most when the command
// is stopped. A process that is killed in the middle of a system call ends when that does,
// which the command can delay, as by writing much and having the disk write it out.
func (p *Process) waitAll() error {
	ended := make(chan error, 1)
	go func() { ended <- p.child.WaitAll() }()
	select {
	case err := <-ended:
		return err
	case <-p.hurry:
	}
	late := time.NewTimer(endTime)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return ErrStillEnding
	}
}

// enter announces a call of a method of the child, and reports false when the command has
// ended. The call ends with calls.Done.
func (p *Process) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.calls.Add(1)
	return true
}

// Write writes to the command's standard input, or types on its terminal. It blocks
// while the pipe or the terminal is full, and returns how much was written: all of it,
// or an error. That is ErrNoInput without either, os.ErrClosed after CloseInput or the
// end, and io.ErrClosedPipe when no process can read the pipe any more.
func (p *Process) Write(b []byte) (int, error) {
	p.input.beat()
	defer p.input.beat()
	switch {
	case p.tty != nil:
		return p.tty.Write(b)
	case p.stdin == nil:
		return 0, ErrNoInput
	}
	n, err := take(p.stdin, b)
	if errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("%w: %w", io.ErrClosedPipe, err)
	}
	return n, err
}

// SetInputDeadline bounds writes, including one in progress: they return
// os.ErrDeadlineExceeded from t on. The zero Time is no bound.
func (p *Process) SetInputDeadline(t time.Time) error {
	f := p.stdin
	if p.tty != nil {
		f = p.tty.file
	}
	if f == nil {
		return ErrNoInput
	}
	if err := f.SetWriteDeadline(t); err != nil {
		return fmt.Errorf("cannot bound writes to the process: %w", err)
	}
	return nil
}

// CloseInput ends the command's standard input. Without a pipe, and when called again,
// it does nothing. A terminal is not closed: it gets its end-of-file character, each
// time.
func (p *Process) CloseInput() error {
	if p.tty != nil {
		p.input.beat()
		return p.tty.endInput()
	}
	if p.stdin == nil {
		return nil
	}
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("cannot close the input of the process: %w", err)
	}
	return nil
}

// CloseOutput gives up the reading of an output stream that is a pipe of its own: the next write
// of the command to it fails, with SIGPIPE where there are signals. What was not read is lost.
func (p *Process) CloseOutput(s executor.Stream) { p.pump.closeStream(s) }

// Resize changes the size of the terminal, which signals its foreground process group
// (SIGWINCH). It returns ErrNoTerminal without one, and os.ErrProcessDone at the end.
func (p *Process) Resize(s executor.Size) error {
	if p.tty == nil {
		return ErrNoTerminal
	}
	if !p.enter() {
		return os.ErrProcessDone
	}
	defer p.calls.Done()
	return p.tty.resize(s.OrUsual())
}

// Terminal returns the master end of the terminal, nil without one. The caller must
// neither read nor close it.
func (p *Process) Terminal() *os.File {
	if p.tty == nil {
		return nil
	}
	return p.tty.file
}

// InputPipe returns our end of the pipe of Config.PipeStdin; nil without one.
func (p *Process) InputPipe() *os.File { return p.stdin }

// LastActivity returns when there was output or input last; the zero Time is never.
func (p *Process) LastActivity() time.Time {
	last := p.pump.last()
	if in := p.input.last(); in.After(last) {
		return in
	}
	return last
}

// NextOutput returns a channel that is closed with the next output.
func (p *Process) NextOutput() <-chan struct{} { return p.pump.next() }

// Delivered reports that Config.Output has returned from everything that was written
// until now; false where that cannot be known.
func (p *Process) Delivered() bool { return p.pump.delivered() }

// Signal signals the command's process group. On a terminal the signals of its keys
// (SIGINT, SIGQUIT, SIGTSTP) go to its foreground group. It returns os.ErrProcessDone
// when the command has ended.
func (p *Process) Signal(number int) error {
	if !p.enter() {
		return os.ErrProcessDone
	}
	defer p.calls.Done()
	sig := syscall.Signal(number)
	if p.tty != nil {
		if sent, err := p.tty.signal(sig); sent {
			return err
		}
	}
	return p.child.Signal(sig, false)
}

// Stop ends the process tree: SIGTERM, the grace, SIGKILL. It returns at once, and does
// nothing when Stop was called before. When the command itself has ended already, it only
// shortens what Wait waits for.
func (p *Process) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.hurried {
		p.hurried = true
		close(p.hurry)
	}
	if p.over || p.stopped {
		return
	}
	p.stopped = true
	p.calls.Add(1)
	go p.stop()
}

// stop does not look at errors: the command may have ended at each step.
func (p *Process) stop() {
	defer p.calls.Done()
	if p.cfg.Grace > 0 {
		p.lastSignal = syscall.SIGTERM
		if p.tty != nil {
			_ = p.child.Signal(syscall.SIGHUP, true) // interactive shells ignore SIGTERM
		}
		_ = p.child.Signal(syscall.SIGTERM, true)
		wake(p.child)
		grace := time.NewTimer(p.cfg.Grace)
		defer grace.Stop()
		select {
		case <-p.ended:
			return
		case <-grace.C:
		}
	}
	p.lastSignal = syscall.SIGKILL
	_ = p.child.Kill()
}

// Ended is closed when the command itself has ended. There may still be output.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait blocks until everything is over: the command has ended, its output was read, and
// no process of its tree is left. It may be called more than once. The Exit is never
// nil, also with an error. What only the Child knows is not in it.
func (p *Process) Wait() (*executor.Exit, error) {
	<-p.done
	x := p.exit
	return &x, p.err
}
