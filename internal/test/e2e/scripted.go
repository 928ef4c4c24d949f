// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// A Scripted is an executor that starts one process that does what the test says, without taking time.
type Scripted struct {
	UnknownHost
	Process *ScriptedProcess
}

// Start gives the process the Spec.
func (e *Scripted) Start(_ context.Context, spec *executor.Spec) (executor.Process, error) {
	e.Process.Spec = spec
	return e.Process, nil
}

// A ScriptedProcess has an input that can be full, an output, and things to wait for. Its
// deadlines are those of a file: one that has passed refuses every write.
type ScriptedProcess struct {
	Spec *executor.Spec
	Out  *FakeOutput

	// What follows is changed by Set.
	Input  []byte
	Full   bool
	Step   int                 // what one write takes before the input is full; 0 is all
	Broken error               // what writes return
	Waits  *executor.InputWait // what it waits for; nil for nothing
	Port   int                 // on which it listens; 0 for none

	ended    chan struct{}
	end      sync.Once
	mu       sync.Mutex
	deadline time.Time
	changed  chan struct{} // closed when something changes
}

// NewScriptedProcess returns a process that is started by a Scripted.
func NewScriptedProcess() *ScriptedProcess {
	return &ScriptedProcess{ended: make(chan struct{}), changed: make(chan struct{}),
		Out: NewFakeOutput(1 << 20)}
}

// Set changes the process and wakes what waits for it.
func (p *ScriptedProcess) Set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Say prints text, after which the process waits for nothing.
func (p *ScriptedProcess) Say(text string) {
	p.Set(func() { p.Waits = nil })
	p.Out.write([]byte(text))
	p.Spec.OnOutput(executor.Stdout, []byte(text))
}

func (p *ScriptedProcess) Write(b []byte) (int, error) {
	for {
		p.mu.Lock()
		full, changed, left, set := p.Full, p.changed, time.Until(p.deadline), !p.deadline.IsZero()
		if !full && (!set || left > 0) && p.Broken == nil {
			n := len(b)
			if p.Step > 0 {
				n = min(n, p.Step)
			}
			p.Input = append(p.Input, b[:n]...)
			p.Full = p.Step > 0
			p.mu.Unlock()
			if n < len(b) {
				return n, io.ErrShortWrite
			}
			return n, nil
		}
		broken := p.Broken
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

func (p *ScriptedProcess) SetInputDeadline(t time.Time) error {
	p.Set(func() { p.deadline = t })
	return nil
}

// CloseInput types the end-of-file character on a terminal.
func (p *ScriptedProcess) CloseInput() error {
	if p.Spec.TTY != nil {
		_, err := p.Write([]byte{4})
		return err
	}
	p.Set(func() { p.Broken = os.ErrClosed })
	return nil
}

func (p *ScriptedProcess) AwaitInput(ctx context.Context) (*executor.InputWait, error) {
	var in *executor.InputWait
	err := p.until(ctx, func() bool { in = p.Waits; return in != nil })
	return in, err
}

func (p *ScriptedProcess) AwaitPort(ctx context.Context, _ []int) (int, error) {
	var port int
	err := p.until(ctx, func() bool { port = p.Port; return port != 0 })
	return port, err
}

// until waits for something to be true.
func (p *ScriptedProcess) until(ctx context.Context, holds func() bool) error {
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

// Exit ends the process.
func (p *ScriptedProcess) Exit()                      { p.end.Do(func() { close(p.ended); p.Out.end() }) }
func (p *ScriptedProcess) Output() executor.Output    { return p.Out }
func (p *ScriptedProcess) Stop()                      { p.Exit() }
func (p *ScriptedProcess) Signal(int) error           { return nil }
func (p *ScriptedProcess) Resize(executor.Size) error { return nil }
func (p *ScriptedProcess) Sandbox() executor.Sandbox  { return executor.Sandbox{} }

func (p *ScriptedProcess) Wait() (*executor.Exit, error) {
	<-p.ended
	return &executor.Exit{}, nil
}
