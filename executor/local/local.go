// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local runs commands on this machine.
//
// An [Executor] has package confine start the command under its policy and
// package proc look after it: pipes, output, the end. What it adds is the
// contract of package executor, the words of its errors, and the end of
// everything at Close.
//
// It decides nothing. What may be touched, how long a command may run and what
// is kept of its output is said by the caller.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/confine"
	"github.com/sallyport-dev/sallyport/internal/proc"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An Executor runs commands on this machine. The zero Executor is ready; it looks
// at the machine when the first command starts. It must not be copied after that.
type Executor struct {
	host   confine.Host
	shared proc.Shared

	mu      sync.Mutex
	closed  bool
	running map[*process]struct{}
}

// ErrClosed is the answer of an [Executor] after Close.
var ErrClosed = errors.New("executor: it was closed")

// Start implements [executor.Executor].
func (e *Executor) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := check(spec); err != nil {
		return nil, err
	}
	p := &process{}
	if !e.add(p) {
		return nil, ErrClosed
	}
	if err := e.start(ctx, spec, p); err != nil {
		e.remove(p)
		return nil, err
	}
	return p, nil
}

func (e *Executor) start(ctx context.Context, spec *executor.Spec, p *process) error {
	cfg := proc.Config{
		Stdin: spec.Stdin, PipeStdin: spec.PipeStdin,
		Stdout: spec.Stdout, Stderr: spec.Stderr,
		Grace: spec.Grace, Shared: &e.shared, Terminal: spec.TTY != nil, Output: spec.Output,
		Over: func() { e.remove(p) },
	}
	running, err := proc.Start(cfg, func(stdin, stdout, stderr *os.File) (proc.Child, error) {
		c, err := e.host.Start(ctx, spec, stdin, stdout, stderr)
		if err != nil {
			return nil, err
		}
		p.child = c
		return child{c}, nil
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	p.running = running
	closed := e.closed
	e.mu.Unlock()
	if closed {
		running.Stop()
	}
	return nil
}

func (e *Executor) add(p *process) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	if e.running == nil {
		e.running = make(map[*process]struct{})
	}
	p.gone = make(chan struct{})
	e.running[p] = struct{}{}
	return true
}

func (e *Executor) remove(p *process) {
	e.mu.Lock()
	delete(e.running, p)
	e.mu.Unlock()
	close(p.gone)
}

// Close stops every process, waits until nothing of them is left, and frees what
// the Executor holds, the private temporary folder included. It may be called
// more than once; every call waits.
func (e *Executor) Close() error {
	e.mu.Lock()
	e.closed = true
	var left []*process
	for p := range e.running {
		left = append(left, p)
		if p.running != nil {
			p.running.Stop()
		}
	}
	e.mu.Unlock()
	for _, p := range left {
		<-p.gone
	}
	e.shared.Close()
	if err := e.host.Close(); err != nil {
		return fmt.Errorf("executor: cannot close: %w", err)
	}
	return nil
}

// process is a running command of an Executor.
type process struct {
	running *proc.Process
	child   confine.Child
	gone    chan struct{} // closed when the Executor has forgotten it
}

func (p *process) CloseInput() error         { return p.running.CloseInput() }
func (p *process) Stop()                     { p.running.Stop() }
func (p *process) Signal(sig int) error      { return p.running.Signal(syscall.Signal(sig)) }
func (p *process) Sandbox() executor.Sandbox { return p.child.Sandbox() }

// Write tells a pipe that nobody reads any more in the words of package io.
func (p *process) Write(b []byte) (int, error) {
	n, err := p.running.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("%w: %w", io.ErrClosedPipe, err)
	}
	return n, err
}

func (p *process) Wait() (*executor.Exit, error) {
	// What waits keeps its stack for as long as the command lives, so the large part is
	// a function of its own.
	x, err := p.running.Wait()
	return p.exited(&x, err)
}

// exited puts the end of the command in the words of package executor.
func (p *process) exited(x *proc.Exit, err error) (*executor.Exit, error) {
	exit := &executor.Exit{
		Code: x.Code, Signal: x.Signal, Stopped: x.Stopped, LastSignal: x.LastSignal,
		StreamsLeftOpen: x.StreamsLeftOpen, Sandbox: p.child.Sandbox(), SurvivorsBy: p.child.EndedBy(),
	}
	after := p.child.Aftermath()
	exit.Quarantined, exit.Denials, exit.DenialsOmitted, exit.Broken = after.Quarantined, after.Denials, after.Omitted, after.Broken
	limited(exit, &after)
	for _, s := range x.Survivors {
		exit.Survivors = append(exit.Survivors, executor.Survivor(s))
	}
	if unsupported := new(sandbox.UnsupportedError); err == nil && errors.As(x.Lost, &unsupported) {
		err = x.Lost // found out so late, but the command did not run
	}
	return exit, err
}

// limited adds what became of the limits. A command that was refused a process and
// ended well all the same was not ended by that. One whose whole tree the kernel
// has killed, its reaper with it, ended by the signal that does that.
func limited(exit *executor.Exit, after *confine.Aftermath) {
	exit.Limits, exit.Limit, exit.Usage = after.Limits, after.Limit, after.Usage
	switch {
	case exit.Limit == executor.LimitPIDs && exit.Code == 0:
		exit.Limit = ""
	case exit.Limit != "" && exit.Code < 0:
		const kill = 9
		exit.Code, exit.Signal = 128+kill, kill
	}
}

// child is a confined child in the words of package proc.
type child struct{ confine.Child }

func (c child) Survivors() []proc.Survivor {
	var out []proc.Survivor
	for _, s := range c.Child.Survivors() {
		out = append(out, proc.Survivor(s))
	}
	return out
}

// check refuses what no system call can take.
func check(spec *executor.Spec) error {
	if len(spec.Args) == 0 {
		return executor.ErrNoArgs
	}
	if err := spec.Resources.Check(); err != nil {
		return err
	}
	if spec.TTY != nil && (spec.Stdin != nil || spec.Stdout != nil || spec.PipeStdin) {
		return errTwoInputs
	}
	for i, a := range spec.Args {
		if strings.ContainsRune(a, 0) {
			return &executor.NULError{Where: fmt.Sprintf("argument %d", i)}
		}
	}
	for _, f := range []struct{ where, text string }{
		{"the program's own name", spec.Arg0}, {"the working directory", spec.Dir}, {"the folder for /tmp", spec.Tmp},
	} {
		if strings.ContainsRune(f.text, 0) {
			return &executor.NULError{Where: f.where}
		}
	}
	for _, entry := range spec.Env {
		if strings.ContainsRune(entry, 0) {
			name, _, _ := strings.Cut(entry, "=")
			return &executor.NULError{Where: fmt.Sprintf("the environment variable %q", name)}
		}
	}
	return nil
}

var _ executor.Executor = (*Executor)(nil)
