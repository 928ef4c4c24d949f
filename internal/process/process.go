// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process looks after a running command: it gives it its standard streams,
// hears its output, ends it when asked, and knows when everything is over.
//
// Flow: [Open] opens the pipes, the caller starts the command on them, and
// [Streams.Follow] returns a [Process]. One goroutine, the pump, hears both output
// streams; another waits for the command. When the command itself has ended, its
// descendants may still hold the streams: they get a short time, bounded and the
// same for both streams, and then whatever is left of the tree is killed.
//
// Order across the two streams is the order of the writes as far as it can be
// known; no system keeps a common clock for two pipes. A write is told from the
// next one on the other stream when the pump runs in between, which takes some tens
// of microseconds. For writes that are closer together Linux still tells in which
// order the streams took turns, and a turn is taken to be one line, a stream's last
// turn within such a moment to be all the rest. So lines that a program writes one
// at a time come out in order, with rare exceptions at the speed at which a writer
// keeps up with the pump. Elsewhere a moment's output is heard one stream at a time.
//
// The package knows nothing of sandboxes, policies or results, and never decides
// why a command has to end.
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

// The times of a command's end, when [Config] does not say otherwise.
const (
	// DefaultGrace is the time between asking a tree to end and killing it.
	DefaultGrace = 2 * time.Second
	// DefaultQuiet is how long a stream that somebody still holds may be silent
	// after the command has ended.
	DefaultQuiet = 250 * time.Millisecond
	// DefaultDrain is how long such a stream is heard at most.
	DefaultDrain = 2 * time.Second
)

// A Child is a started command and its process tree.
type Child interface {
	// Wait blocks until the command itself has ended. A negative code means that it is
	// not known how, because the tree was killed first. With an error the command did
	// not run.
	Wait() (code, signal int, err error)
	// WaitAll blocks until nothing of the tree is left.
	WaitAll() error
	// Signal sends sig to the command's process group, or to everything in the
	// tree.
	Signal(sig syscall.Signal, tree bool) error
	// Kill kills everything in the tree.
	Kill() error
	// Survivors says who is left; it is asked once, after Wait.
	Survivors() []executor.Survivor
	// Terminal is the master end of the terminal that takes the place of the
	// streams, which does not block; nil without one. The Process closes it.
	Terminal() *os.File
	// Close frees what the Child holds; nothing is called after it.
	Close() error
}

// Config says how a command is looked after. The zero Config gives it the null
// device to read and throws its output away.
type Config struct {
	// Stdin is handed on as it is; nil is the null device, or with PipeStdin a
	// pipe for [Process.Write].
	Stdin     *os.File
	PipeStdin bool
	// Stdout and Stderr are handed on as they are; nil is a pipe that Output
	// hears.
	Stdout, Stderr *os.File
	// Terminal says that the launch gives the command a terminal in place of its
	// streams, except those that are set here. Output hears it as standard output.
	Terminal bool
	// Output hears what comes through the pipes, one call at a time. It must not
	// keep p. While it blocks, the command's writes wait. Nil throws away.
	Output func(s executor.Stream, p []byte)

	// Grace, Quiet and Drain default to the constants. A negative Grace is none.
	Grace, Quiet, Drain time.Duration

	// Order tells in which order the command writes to its two pipes; nil for the order
	// of the reads.
	Order *Order
}

// A Process is a command that was started. Its methods may be called from
// several goroutines at once.
type Process struct {
	child Child
	pump  pump
	cfg   Config
	stdin *os.File  // our end of the pipe; nil without one
	tty   *terminal // nil without one

	ended chan struct{} // closed when the command itself has ended
	done  chan struct{} // closed when everything is over
	exit  executor.Exit // written before done is closed, with err
	err   error

	keys  pulse // of input; counts from began
	began time.Time

	mu         sync.Mutex
	over       bool // the command has ended: nothing more is sent to it
	stopped    bool
	lastSignal syscall.Signal
	calls      sync.WaitGroup // calls of child's methods under way; added to under mu while not over
}

// ErrNoStdin is the answer of [Process.Write] where [Config.PipeStdin] was not
// set.
var ErrNoStdin = errors.New("process: its standard input is not a pipe of ours")

// ErrNoTerminal is the answer of what needs a terminal where [Config.Terminal] was
// not set, or where none can be made.
var ErrNoTerminal = fmt.Errorf("process: it has no terminal: %w", errors.ErrUnsupported)

// ErrLineTooLong refuses input of which the terminal would throw a part away.
// Nothing of it was written.
var ErrLineTooLong = errors.New("process: a line of input is longer than the 4095 bytes that a terminal keeps for a program that reads whole lines; send shorter lines, or use a pipe")

func newProcess(cfg Config, child Child, p pump, stdin *os.File) *Process {
	return &Process{
		child: child, pump: p, cfg: cfg, stdin: stdin,
		ended: make(chan struct{}), done: make(chan struct{}), began: time.Now(),
	}
}

// useTerminal has the terminal of the child heard instead of pipes.
func (p *Process) useTerminal() error {
	master := p.child.Terminal()
	if master == nil {
		return ErrNoTerminal
	}
	pump, err := newTerminalPump(&p.cfg, master)
	if err != nil {
		_ = master.Close()
		return err
	}
	if p.tty, err = newTerminal(master); err != nil {
		_ = master.Close()
		return err
	}
	p.pump.abandon() // it has nothing to hear
	p.pump = pump
	return nil
}

// attend begins to look after the child.
func (p *Process) attend() {
	p.pump.start()
	go p.supervise()
}

// supervise follows the command to its end and the end of everything.
func (p *Process) supervise() {
	defer close(p.done)
	x := &p.exit
	x.Code, x.Signal, p.err = p.child.Wait()
	p.mu.Lock()
	p.over = true
	x.Stopped = p.stopped
	p.mu.Unlock()
	close(p.ended)
	p.pump.commandEnded()

	x.StreamsLeftOpen = !drain(p.pump, p.cfg.Quiet, p.cfg.Drain)
	x.Survivors = p.child.Survivors()
	// Killing nothing is fine, and where the tree has a root of its own it is
	// what ends that. What went wrong shows in WaitAll.
	_ = p.child.Kill()
	if err := p.child.WaitAll(); err != nil {
		p.err = fmt.Errorf("cannot tell whether the process tree has ended: %w", err)
	}
	p.pump.finish()
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	if p.tty != nil {
		_ = p.child.Terminal().Close()
	}
	p.calls.Wait()
	_ = p.child.Close()
	x.LastSignal = int(p.lastSignal)
}

// enter announces a call of one of the child's methods, unless the command has
// ended; leave with calls.Done.
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
// while the pipe or the terminal is full, and returns how much was taken: all of it,
// or an error. Without either it returns ErrNoStdin, os.ErrClosed after CloseInput or
// the end, and io.ErrClosedPipe when no process can read it any more.
func (p *Process) Write(b []byte) (int, error) {
	p.keys.beat(p.began)
	defer p.keys.beat(p.began)
	switch {
	case p.tty != nil:
		return p.tty.Write(b)
	case p.stdin == nil:
		return 0, ErrNoStdin
	}
	n, err := p.stdin.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("%w: %w", io.ErrClosedPipe, err)
	}
	return n, err
}

// SetInputDeadline bounds writes, also one that is under way: they return
// os.ErrDeadlineExceeded then. The zero Time is no bound.
func (p *Process) SetInputDeadline(t time.Time) error {
	f := p.stdin
	if p.tty != nil {
		f = p.child.Terminal()
	}
	if f == nil {
		return ErrNoStdin
	}
	if err := f.SetWriteDeadline(t); err != nil {
		return fmt.Errorf("process: cannot bound writes to its input: %w", err)
	}
	return nil
}

// CloseInput ends the command's standard input. Without a pipe, and when called
// again, it does nothing. A terminal cannot be closed: it gets its end-of-file
// character, each time.
func (p *Process) CloseInput() error {
	if p.tty != nil {
		p.keys.beat(p.began)
		return p.tty.end()
	}
	if p.stdin == nil {
		return nil
	}
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("process: cannot close its input: %w", err)
	}
	return nil
}

// Resize changes the size of the terminal, which tells its foreground process group
// (SIGWINCH). It is ErrNoTerminal without one, and os.ErrProcessDone at the end.
func (p *Process) Resize(s executor.Size) error {
	if p.tty == nil {
		return ErrNoTerminal
	}
	if !p.enter() {
		return os.ErrProcessDone
	}
	defer p.calls.Done()
	s = s.OrUsual()
	return p.tty.resize(s.Cols, s.Rows)
}

// Terminal is the master end of the terminal, nil without one. It must be neither
// read nor closed, and is of no use when everything is over.
func (p *Process) Terminal() *os.File {
	if p.tty == nil {
		return nil
	}
	return p.child.Terminal()
}

// Input is our end of the pipe that Config.PipeStdin asked for; nil without one.
func (p *Process) Input() *os.File { return p.stdin }

// Activity returns when there was output or input last, the zero Time for never, and
// a channel that is closed when there is output the next time.
func (p *Process) Activity() (last time.Time, next <-chan struct{}) {
	next = p.pump.heard()
	last = p.pump.lastByte()
	if k := p.keys.at(p.began); k.After(last) {
		last = k
	}
	return last, next
}

// AllHeard reports that Config.Output has returned from whatever was written until
// now; false where that cannot be known. Who sees the command wait for input, and then
// this, knows that nobody has yet to hear what it said before.
func (p *Process) AllHeard() bool { return p.pump.allHeard() }

// Signal sends a signal to the command's process group; those that a key of a terminal
// stands for (SIGINT, SIGQUIT, SIGTSTP) go to the terminal's foreground group
// instead, where there is one. It returns os.ErrProcessDone when the command has
// ended.
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

// Stop ends the whole tree: SIGTERM, the grace, SIGKILL. A stopped process is
// woken, so that it can hear the first. On a terminal SIGHUP comes before, because
// that is what says there that nobody is left: shells ignore the other. Stop returns at once; it does nothing
// when the command has ended or was told to stop before.
func (p *Process) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.stopped {
		return
	}
	p.stopped = true
	p.calls.Add(1)
	go p.climb()
}

// climb is the ladder of Stop. Each step may find the command gone: then there
// is nothing left to do.
func (p *Process) climb() {
	defer p.calls.Done()
	if p.cfg.Grace > 0 {
		p.setLastSignal(syscall.SIGTERM)
		if p.tty != nil {
			_ = p.child.Signal(syscall.SIGHUP, true)
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
	p.setLastSignal(syscall.SIGKILL)
	_ = p.child.Kill()
}

func (p *Process) setLastSignal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastSignal = sig
}

// Ended is closed when the command itself has ended; its output may still come.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait blocks until everything is over: the command has ended, its output has
// been heard, and nothing of its tree is left. It may be called more than once.
// The Exit is never nil, also with an error: it is what is known then. What only the
// Child knows is not in it.
func (p *Process) Wait() (*executor.Exit, error) {
	<-p.done
	x := p.exit
	return &x, p.err
}

var _ io.Writer = (*Process)(nil)
