// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proc looks after a running command: it gives it its standard streams,
// hears its output, ends it when asked, and knows when everything is over.
//
// Flow: [Start] makes the pipes, has the caller's function launch the command
// with them, and returns a [Process]. One goroutine, the pump, hears both output
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
package proc

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

// A Child is a launched command with everything that it starts.
type Child interface {
	// Wait blocks until the command itself has ended. An error means that how
	// it ended is not known, as when the tree was killed first.
	Wait() (code, signal int, err error)
	// WaitAll blocks until nothing of the tree is left.
	WaitAll() error
	// Signal sends sig to the command's process group, or to everything in the
	// tree.
	Signal(sig syscall.Signal, tree bool) error
	// Kill kills everything in the tree.
	Kill() error
	// Survivors says who is left; it is asked once, after Wait.
	Survivors() []Survivor
	// Terminal is the master end of the terminal that takes the place of the
	// streams, which does not block; nil without one. The Process closes it.
	Terminal() *os.File
	// Close frees what the Child holds; nothing is called after it.
	Close() error
}

// A Survivor is a process that outlived its command.
type Survivor struct {
	PID     int
	Name    string
	Command string // for people; empty when it is not known
}

// A Launch starts a command with these streams. It must not keep the files
// after it has returned.
type Launch func(stdin, stdout, stderr *os.File) (Child, error)

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

	// Over is called once when everything is over and Wait returns; nil does nothing.
	Over func()

	// Grace, Quiet and Drain default to the constants. A negative Grace is none.
	Grace, Quiet, Drain time.Duration

	// Shared is what several commands share; nil gives this one its own. It stays
	// its owner's to close.
	Shared *Shared
}

// An Exit is how a process ended.
type Exit struct {
	// Code is the exit code, or 128+Signal; -1 when nothing is known.
	Code int
	// Lost says why nothing is known; nil when Code is.
	Lost error
	// Signal is the signal that ended the command, or 0.
	Signal int
	// Stopped says that Stop was called before the command ended by itself, and
	// LastSignal which signal that sent last.
	Stopped    bool
	LastSignal int
	// Survivors outlived the command and were killed.
	Survivors []Survivor
	// StreamsLeftOpen says that somebody still held an output stream when the
	// wait for it was over.
	StreamsLeftOpen bool
}

// A Process is a command that was started. Its methods may be called from
// several goroutines at once.
type Process struct {
	child Child
	pump  pump
	cfg   Config
	own   bool      // cfg.Shared is ours to close
	stdin *os.File  // our end of the pipe; nil without one
	tty   *terminal // nil without one

	ended chan struct{} // closed when the command itself has ended
	done  chan struct{} // closed when everything is over
	exit  Exit          // written before done is closed
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

// Start has launch start a command and looks after it. An error is that of the
// launch, or says that no pipe could be made; nothing is left behind then. The
// caller must call Wait.
func Start(cfg Config, launch Launch) (*Process, error) {
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	if cfg.Quiet == 0 {
		cfg.Quiet = DefaultQuiet
	}
	if cfg.Drain == 0 {
		cfg.Drain = DefaultDrain
	}
	if cfg.Output == nil {
		cfg.Output = func(executor.Stream, []byte) {}
	}
	own := cfg.Shared == nil
	if own {
		cfg.Shared = new(Shared)
	}
	s, err := openStreams(&cfg)
	if err != nil {
		if own {
			cfg.Shared.Close()
		}
		return nil, fmt.Errorf("process: cannot make its pipes: %w", err)
	}
	child, err := launch(s.child[0], s.child[1], s.child[2])
	s.closeChildEnds()
	if err != nil {
		s.closeOurEnds()
		if own {
			cfg.Shared.Close()
		}
		return nil, err
	}
	p := newProcess(cfg, own, child, s.pump, s.stdin)
	if cfg.Terminal {
		if err := p.useTerminal(); err != nil {
			p.giveUp()
			return nil, err
		}
	}
	p.attend()
	return p, nil
}

func newProcess(cfg Config, ownShared bool, child Child, p pump, stdin *os.File) *Process {
	return &Process{
		child: child, pump: p, cfg: cfg, own: ownShared, stdin: stdin,
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

// giveUp ends a child that cannot be looked after.
func (p *Process) giveUp() {
	_ = p.child.Kill()
	_ = p.child.WaitAll()
	_ = p.child.Close()
	p.pump.abandon()
	if p.own {
		p.cfg.Shared.Close()
	}
}

// attend begins to look after the child.
func (p *Process) attend() {
	p.pump.start()
	go p.supervise()
}

// supervise follows the command to its end and the end of everything.
func (p *Process) supervise() {
	defer p.announce()
	x := Exit{Code: -1}
	code, signal, err := p.child.Wait()
	switch {
	case err != nil:
		x.Lost = err
	case signal != 0:
		x.Code, x.Signal = 128+signal, signal
	default:
		x.Code = code
	}
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
		p.err = fmt.Errorf("process: cannot tell whether its tree has ended: %w", err)
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
	if p.own {
		p.cfg.Shared.Close()
	}
	x.LastSignal = int(p.lastSignal)
	p.exit = x
}

// announce says that everything is over.
func (p *Process) announce() {
	close(p.done)
	if p.cfg.Over != nil {
		p.cfg.Over()
	}
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
// the end, and the system's broken-pipe error when nobody can read any more.
func (p *Process) Write(b []byte) (int, error) {
	p.keys.beat(p.began)
	defer p.keys.beat(p.began)
	switch {
	case p.tty != nil:
		return p.tty.Write(b)
	case p.stdin == nil:
		return 0, ErrNoStdin
	}
	return p.stdin.Write(b)
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
func (p *Process) Resize(cols, rows uint16) error {
	if p.tty == nil {
		return ErrNoTerminal
	}
	if !p.enter() {
		return os.ErrProcessDone
	}
	defer p.calls.Done()
	return p.tty.resize(cols, rows)
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

// Signal sends sig to the command's process group; those that a key of a terminal
// stands for (SIGINT, SIGQUIT, SIGTSTP) go to the terminal's foreground group
// instead, where there is one. It returns os.ErrProcessDone when the command has
// ended.
func (p *Process) Signal(sig syscall.Signal) error {
	if !p.enter() {
		return os.ErrProcessDone
	}
	defer p.calls.Done()
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
// With an error the Exit is what is known all the same.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

var _ io.Writer = (*Process)(nil)
