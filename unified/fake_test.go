// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A fakeMachine is an executor whose processes exist in the test only: each runs the play
// for its script, or does nothing until it is ended. It stands for another machine too:
// the Runner knows it by its contract alone.
type fakeMachine struct {
	plays map[string]func(*fakeProcess)
	fail  error         // of every start
	slow  time.Duration // of every start

	mu      sync.Mutex
	started []*fakeProcess
}

func (m *fakeMachine) Host(context.Context) (executor.HostInfo, error) {
	return executor.HostInfo{OS: "linux"}, nil
}

func (m *fakeMachine) Places(_ context.Context, dir string, _ []string, _ string) (sandbox.Places, error) {
	return sandbox.Places{Dir: "/" + strings.TrimPrefix(dir, "/")}, nil
}

func (m *fakeMachine) Shell(_ context.Context, name, script string, login bool) ([]string, error) {
	flag := "-c"
	if login {
		flag = "-lc"
	}
	return []string{"/bin/" + cmp.Or(name, "sh"), flag, script}, nil
}

func (m *fakeMachine) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	if m.fail != nil {
		return nil, m.fail
	}
	after(ctx, m.slow)
	p := &fakeProcess{spec: spec, changed: make(chan struct{}),
		out: &countedOutput{Log: output.NewLog(spec.Retain.Memory, nil, nil)}}
	p.context, p.cancel = context.WithCancel(context.Background())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started = append(m.started, p)
	if play := m.plays[spec.Args[len(spec.Args)-1]]; play != nil {
		go play(p)
	}
	return p, nil
}

// countedOutput counts how often it is closed.
type countedOutput struct {
	*output.Log
	closed int
}

func (o *countedOutput) Close() error {
	o.closed++
	return o.Log.Close()
}

// An ending is how a fakeProcess ends.
type ending struct {
	code, signal int
	denials      []sandbox.Denial
	sandboxed    bool
	observed     bool
	lost         error // of Wait: how it ended is not known
}

// A fakeProcess does what its play says.
type fakeProcess struct {
	spec    *executor.Spec
	out     *countedOutput
	context context.Context // ends with the process
	cancel  func()

	printing sync.Mutex

	mu          sync.Mutex
	onWrite     func(*fakeProcess, string) error
	onInterrupt func(*fakeProcess) error
	stubborn    bool // Stop does nothing
	ended       *ending
	stopped     bool // by Stop
	shut        bool // the streams are closed
	last        time.Time
	waiting     bool
	blind       bool // its executor cannot tell what it waits for
	changed     chan struct{}
}

// set changes the process and wakes what waits for it.
func (p *fakeProcess) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *fakeProcess) print(s string) {
	p.printing.Lock()
	defer p.printing.Unlock()
	p.out.Write(executor.Stdout, []byte(s))
	p.spec.OnOutput(executor.Stdout, []byte(s))
	p.set(func() { p.last = time.Now() })
}

// exit ends the process. Unless held, its streams are closed with it.
func (p *fakeProcess) exit(end ending, held bool) {
	p.set(func() {
		if p.ended == nil {
			p.ended, p.shut, p.last = &end, !held, time.Now()
			p.cancel()
		}
	})
}

func (p *fakeProcess) shutStreams() { p.set(func() { p.shut = true }) }

// reacts sets what the process does with text that is written to it.
func (p *fakeProcess) reacts(f func(*fakeProcess, string) error) { p.set(func() { p.onWrite = f }) }

// obeys sets what the process does with an interrupt.
func (p *fakeProcess) obeys(f func(*fakeProcess) error) { p.set(func() { p.onInterrupt = f }) }

func (p *fakeProcess) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended == nil
}

func (p *fakeProcess) Write(b []byte) (int, error) {
	p.mu.Lock()
	react, over := p.onWrite, p.ended != nil
	p.mu.Unlock()
	switch {
	case over:
		return 0, os.ErrProcessDone
	case react == nil:
		return len(b), nil
	}
	if err := react(p, string(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (p *fakeProcess) CloseInput() error                { return nil }
func (p *fakeProcess) SetInputDeadline(time.Time) error { return errors.ErrUnsupported }
func (p *fakeProcess) Resize(executor.Size) error       { return nil }
func (p *fakeProcess) Output() executor.Output          { return p.out }
func (p *fakeProcess) Sandbox() executor.Sandbox        { return executor.Sandbox{Level: "native"} }

func (p *fakeProcess) Signal(int) error {
	p.mu.Lock()
	obey := p.onInterrupt
	p.mu.Unlock()
	if obey == nil {
		return errors.ErrUnsupported
	}
	return obey(p)
}

// wait blocks until holds, at the latest until ctx ends or the time is over.
func (p *fakeProcess) wait(ctx context.Context, longest <-chan time.Time, holds func() bool) error {
	for {
		p.mu.Lock()
		ok, changed := holds(), p.changed
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-longest:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *fakeProcess) AwaitInput(ctx context.Context) (*executor.InputWait, error) {
	p.mu.Lock()
	blind := p.blind
	p.mu.Unlock()
	if blind {
		return nil, errors.ErrUnsupported
	}
	if err := p.wait(ctx, nil, func() bool { return p.waiting || p.ended != nil }); err != nil {
		return nil, err
	}
	if !p.running() {
		return nil, os.ErrProcessDone
	}
	return &executor.InputWait{Kind: executor.InputLine}, nil
}

func (p *fakeProcess) AwaitPort(context.Context, []int) (int, error) {
	return 0, errors.ErrUnsupported
}

func (p *fakeProcess) Stop() {
	p.mu.Lock()
	stubborn := p.stubborn
	p.mu.Unlock()
	if !stubborn && p.running() {
		p.set(func() { p.stopped = true })
		p.exit(ending{code: 143, signal: 15}, false)
	}
}

// quiet is how long a stream that is still held may be silent after the end of a process,
// as executors on this machine have it.
const quiet = 250 * time.Millisecond

func (p *fakeProcess) Wait() (*executor.Exit, error) {
	_ = p.wait(context.Background(), nil, func() bool { return p.ended != nil })
	for silent := false; !silent; {
		p.mu.Lock()
		left := quiet - time.Since(p.last)
		silent = p.shut || left <= 0
		p.mu.Unlock()
		if !silent {
			before := time.Now()
			_ = p.wait(context.Background(), time.After(left),
				func() bool { return p.shut || p.last.After(before) })
		}
	}
	p.out.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	x := &executor.Exit{Code: p.ended.code, Signal: p.ended.signal, Stopped: p.stopped,
		Denials: p.ended.denials}
	x.Sandbox = executor.Sandbox{Level: "none", Observed: p.ended.observed}
	if p.ended.sandboxed {
		x.Sandbox.Level = "native"
	}
	return x, p.ended.lost
}

// after blocks for d, or until ctx ends.
func after(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// echo is a play: a shell that waits for input, prints it, and ends by "exit".
func echo(p *fakeProcess) {
	p.set(func() {
		p.waiting = true
		p.onWrite = func(p *fakeProcess, s string) error {
			if strings.TrimSpace(s) == "exit" {
				p.exit(ending{}, false)
				return nil
			}
			p.print(s)
			return nil
		}
	})
}

// seconds is a time in seconds.
func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// later is a play that waits, prints and ends.
func later(d time.Duration, s string, end ending) func(*fakeProcess) {
	return func(p *fakeProcess) {
		after(p.context, d)
		if p.running() {
			p.print(s)
			p.exit(end, false)
		}
	}
}

// isKind reports whether err is an Error of a kind, which target gets then.
func isKind(err error, kind ErrorKind, target **Error) bool {
	return errors.As(err, target) && errors.Is(*target, kind)
}
