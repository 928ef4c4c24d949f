// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// UnknownHost is the part of an executor that does not describe its machine.
type UnknownHost struct{}

// Host is not known.
func (UnknownHost) Host(context.Context) (executor.HostInfo, error) {
	return executor.HostInfo{}, errors.ErrUnsupported
}

// Places are not known.
func (UnknownHost) Places(context.Context, string, []string, string) (sandbox.Places, error) {
	return sandbox.Places{}, errors.ErrUnsupported
}

// Shell knows none.
func (UnknownHost) Shell(context.Context, string, string, bool) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// A Fake is an executor whose commands the test plays: one ends when Play returns.
type Fake struct {
	UnknownHost
	Play func(spec *executor.Spec, p *FakeProcess)
	Spec *executor.Spec // of the last command

	mu sync.Mutex // held while Spec is set
}

// Start starts a command, and does not fail.
func (e *Fake) Start(_ context.Context, spec *executor.Spec) (executor.Process, error) {
	e.mu.Lock()
	e.Spec = spec
	e.mu.Unlock()
	p := NewFakeProcess()
	go func() {
		defer close(p.done)
		e.Play(spec, p)
	}()
	return p, nil
}

// A FakeProcess is a command of a Fake.
type FakeProcess struct {
	Exit    executor.Exit // what Wait returns, with Err
	Err     error
	Stopped chan struct{} // closed by Stop
	Waited  chan struct{} // closed by Wait: that it has started was said
	Signals []int         // those that were sent

	once sync.Once
	wait sync.Once
	done chan struct{}
	mu   sync.Mutex // held while Signals changes
}

// NewFakeProcess returns a process that no Fake has started: it does not end.
func NewFakeProcess() *FakeProcess {
	return &FakeProcess{Stopped: make(chan struct{}), Waited: make(chan struct{}), done: make(chan struct{})}
}

func (p *FakeProcess) SetInputDeadline(time.Time) error { return errors.ErrUnsupported }
func (p *FakeProcess) Output() executor.Output          { return NewFakeOutput(0) }
func (p *FakeProcess) Resize(executor.Size) error       { return errors.ErrUnsupported }

func (p *FakeProcess) AwaitInput(context.Context) (*executor.InputWait, error) {
	return nil, errors.ErrUnsupported
}

func (p *FakeProcess) AwaitPort(context.Context, []int) (int, error) {
	return 0, errors.ErrUnsupported
}

func (p *FakeProcess) Write(b []byte) (int, error) { return len(b), nil }
func (p *FakeProcess) CloseInput() error           { return nil }
func (p *FakeProcess) Sandbox() executor.Sandbox   { return executor.Sandbox{Level: "native"} }
func (p *FakeProcess) Stop()                       { p.once.Do(func() { close(p.Stopped) }) }

func (p *FakeProcess) Wait() (*executor.Exit, error) {
	p.wait.Do(func() { close(p.Waited) })
	<-p.done
	return &p.Exit, p.Err
}

func (p *FakeProcess) Signal(sig int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Signals = append(p.Signals, sig)
	return nil
}

// A FakeOutput is an executor.Output that shares no code with package output, as that of
// another machine would. It retains the last bytes of what is written.
type FakeOutput struct {
	Retain  int   // how many bytes
	Closed  bool  // Close was called
	Failure error // what Err returns

	mu      sync.Mutex
	all     []byte
	ended   bool
	changed chan struct{}
}

// NewFakeOutput returns an empty output that retains so many bytes.
func NewFakeOutput(retain int) *FakeOutput {
	return &FakeOutput{Retain: retain, changed: make(chan struct{})}
}

func (o *FakeOutput) write(p []byte) {
	o.set(func() { o.all = append(o.all, p...) })
}

func (o *FakeOutput) end() { o.set(func() { o.ended = true }) }

func (o *FakeOutput) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *FakeOutput) firstLocked() int { return max(len(o.all)-o.Retain, 0) }

func (o *FakeOutput) Read(ctx context.Context, from uint64) (executor.Chunk, error) {
	for {
		o.mu.Lock()
		at := max(from, uint64(o.firstLocked()))
		ended, changed := o.ended, o.changed
		var data []byte
		if at < uint64(len(o.all)) {
			data = bytes.Clone(o.all[at:])
		}
		o.mu.Unlock()
		switch {
		case data != nil:
			return executor.Chunk{Offset: at, Missing: at - from, Data: data}, nil
		case ended:
			return executor.Chunk{}, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return executor.Chunk{}, context.Cause(ctx)
		}
	}
}

func (o *FakeOutput) Size() (total, missing uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return uint64(len(o.all)), uint64(o.firstLocked())
}

func (o *FakeOutput) LineCount() int { return len(o.lines()) }

func (o *FakeOutput) lines() []executor.Line {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []executor.Line
	for i, l := range strings.Split(strings.TrimSuffix(string(o.all), "\n"), "\n") {
		out = append(out, executor.Line{Number: i + 1, Data: []byte(l), Size: uint64(len(l))})
	}
	return out
}

func (o *FakeOutput) Lines(from, to int) ([]executor.Line, bool) {
	lines := o.lines()
	if to < 1 {
		to = len(lines)
	}
	return lines[min(max(from, 1)-1, len(lines)):min(to, len(lines))], false
}

func (o *FakeOutput) Search(_ context.Context, pattern *regexp.Regexp, _ int) (executor.Found, error) {
	var found executor.Found
	for _, l := range o.lines() {
		if pattern.Match(l.Data) {
			found.Matches = append(found.Matches, executor.Match{Line: l.Number, Data: l.Data})
		}
	}
	return found, nil
}

func (o *FakeOutput) Err() error { return o.Failure }

func (o *FakeOutput) Close() error {
	o.set(func() { o.Closed = true })
	return nil
}
