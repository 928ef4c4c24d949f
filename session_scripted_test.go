// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// A scriptedExecutor starts one process that does what the test says, without taking time.
type scriptedExecutor struct {
	unknownHost
	process *scriptedProcess
}

func (e *scriptedExecutor) Start(_ context.Context, spec *executor.Spec) (executor.Process, error) {
	e.process.spec = spec
	return e.process, nil
}

// A scriptedProcess has an input that can be full, an output, and things to wait for. Its
// deadlines are those of a file: one that has passed refuses every write.
type scriptedProcess struct {
	spec  *executor.Spec
	out   *fakeOutput
	ended chan struct{}
	end   sync.Once

	mu       sync.Mutex
	input    []byte
	full     bool
	step     int   // what one write takes before the input is full; 0 is all
	broken   error // what writes return
	deadline time.Time
	changed  chan struct{} // closed when something of this changes
	waits    *executor.InputWait
	port     int
}

func newScriptedProcess() *scriptedProcess {
	return &scriptedProcess{ended: make(chan struct{}), changed: make(chan struct{}), out: newFakeOutput(1 << 20)}
}

// scriptedSession starts a session of a scriptedProcess, for tests in synctest bubbles.
func scriptedSession(t *testing.T, c *Cmd) (*Runner, *Session, *scriptedProcess) {
	t.Helper()
	p := newScriptedProcess()
	r := &Runner{Executor: &scriptedExecutor{process: p}, Spill: -1, sequentialIDs: true}
	if c.Args == nil {
		c.Args = []string{"fake"}
	}
	c.Dir, c.Env = "/", []string{}
	s, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, s, p
}

// set changes the process and wakes what waits for it.
func (p *scriptedProcess) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// say prints text, after which the process waits for nothing.
func (p *scriptedProcess) say(text string) {
	p.set(func() { p.waits = nil })
	p.out.write([]byte(text))
	p.spec.OnOutput(executor.Stdout, []byte(text))
}

func (p *scriptedProcess) Write(b []byte) (int, error) {
	for {
		p.mu.Lock()
		full, changed, left, set := p.full, p.changed, time.Until(p.deadline), !p.deadline.IsZero()
		if !full && (!set || left > 0) && p.broken == nil {
			n := len(b)
			if p.step > 0 {
				n = min(n, p.step)
			}
			p.input = append(p.input, b[:n]...)
			p.full = p.step > 0
			p.mu.Unlock()
			if n < len(b) {
				return n, io.ErrShortWrite
			}
			return n, nil
		}
		broken := p.broken
		p.mu.Unlock()
		if broken != nil {
			return 0, broken
		}
		var expired <-chan time.Time
		if set {
			if left <= 0 {
				return 0, os.ErrDeadlineExceeded
			}
			timer := time.NewTimer(left)
			defer timer.Stop()
			expired = timer.C
		}
		select {
		case <-changed:
		case <-expired:
		case <-p.ended:
			return 0, os.ErrClosed
		}
	}
}

func (p *scriptedProcess) SetInputDeadline(t time.Time) error {
	p.set(func() { p.deadline = t })
	return nil
}

// CloseInput types the end-of-file character on a terminal.
func (p *scriptedProcess) CloseInput() error {
	if p.spec.TTY != nil {
		_, err := p.Write([]byte{4})
		return err
	}
	p.set(func() { p.broken = os.ErrClosed })
	return nil
}

func (p *scriptedProcess) AwaitInput(ctx context.Context) (*executor.InputWait, error) {
	var in *executor.InputWait
	err := p.until(ctx, func() bool { in = p.waits; return in != nil })
	return in, err
}

func (p *scriptedProcess) AwaitPort(ctx context.Context, _ []int) (int, error) {
	var port int
	err := p.until(ctx, func() bool { port = p.port; return port != 0 })
	return port, err
}

// until waits for something to be true.
func (p *scriptedProcess) until(ctx context.Context, holds func() bool) error {
	for {
		p.mu.Lock()
		ok, changed := holds(), p.changed
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-p.ended:
			return os.ErrProcessDone
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *scriptedProcess) exit()                      { p.end.Do(func() { close(p.ended); p.out.end() }) }
func (p *scriptedProcess) Output() executor.Output    { return p.out }
func (p *scriptedProcess) Stop()                      { p.exit() }
func (p *scriptedProcess) Signal(int) error           { return nil }
func (p *scriptedProcess) Resize(executor.Size) error { return nil }
func (p *scriptedProcess) Sandbox() executor.Sandbox  { return executor.Sandbox{} }
func (p *scriptedProcess) Wait() (*executor.Exit, error) {
	<-p.ended
	return &executor.Exit{}, nil
}
