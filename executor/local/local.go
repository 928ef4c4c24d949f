// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local runs commands on this machine.
//
// An [Executor] opens the streams of a command (package process), starts it on them under
// its policy with the host of this operating system (packages linux, darwin and windows),
// follows it to its end, and retains its output (package output). Close ends every process
// that it started.
//
// It decides nothing: the Spec says what a process may access, how long it may be asked
// to end, and how much of its output is retained.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// An Executor runs commands on this machine. The zero Executor is ready; it probes the
// machine when the first command starts. It must not be copied after that.
type Executor struct {
	// Started, if not nil, is called with the process at the root of the tree of each command that has
	// started, and ended when that has ended. Set it before the first Start.
	Started func(pid int) (ended func())

	host  host
	order process.Order
	logs  dirs.Logs

	mu       sync.Mutex
	closed   bool
	life     context.Context // ends with Close; nil before the first Start
	end      context.CancelCauseFunc
	starting sync.WaitGroup // added to under mu while not closed
	running  map[*command]struct{}
	open     map[*shared]struct{}

	closing  sync.Once
	closeErr error
}

// Another returns an Executor with a private /tmp of its own, which does not do anew what e has done already
// and does not depend on a command: threads are started, filters compiled and what searches have found is
// remembered once. Close it before e.
func (e *Executor) Another() *Executor {
	o := &Executor{Started: e.Started}
	share(&o.host, &e.host)
	return o
}

// ErrClosed is returned by Start after Close.
var ErrClosed = errors.New("the executor is closed")

// Start implements [executor.Executor].
func (e *Executor) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	c, err := e.startIn(ctx, nil, spec)
	if err != nil {
		return nil, err // not a nil command
	}
	return c, nil
}

// begin counts a start, unless the Executor is closed. The context that it returns ends with the
// Executor as well; done must be called.
func (e *Executor) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, ErrClosed
	}
	if e.life == nil {
		e.life, e.end = context.WithCancelCause(context.Background())
	}
	e.starting.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(e.life, func() { cancel(ErrClosed) })
	return ctx, func() {
		detach()
		cancel(nil)
		e.starting.Done()
	}, nil
}

// startIn is Start in a shared sandbox, or with nil in one of its own.
func (e *Executor) startIn(ctx context.Context, in *shared, spec *executor.Spec) (*command, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := check(spec); err != nil {
		return nil, err
	}
	ctx, done, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()

	spec, calls := process.Guard(spec)
	log, onOutput := e.retain(spec)
	c, err := e.start(ctx, in, spec, onOutput)
	if err != nil {
		if spec.Retain.After == nil {
			_ = log.Close() // the next process that makes a file removes what stays
		}
		return nil, err
	}
	c.log, c.open, c.calls = log, spec.Retain.Open, calls
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		c.Stop()
	}
	if e.running == nil {
		e.running = make(map[*command]struct{})
	}
	e.running[c] = struct{}{}
	return c, nil
}

// start starts the command and follows it.
func (e *Executor) start(ctx context.Context, in *shared, spec *executor.Spec,
	onOutput func(executor.Stream, []byte)) (*command, error) {
	for _, f := range append(slices.Collect(maps.Values(spec.Files)), spec.Stdin, spec.Stdout, spec.Stderr) {
		if f != nil {
			// The ends of an os.Pipe do not block, which programs do not expect of their streams: a
			// shell takes it for the end of its input. To ask for the number undoes it, as in os/exec.
			_ = f.Fd()
		}
	}
	streams, err := process.Open(process.Config{
		Stdin: spec.Stdin, PipeStdin: spec.PipeStdin, Stdout: spec.Stdout, Stderr: spec.Stderr,
		Terminal: spec.TTY != nil,
		Output:   onOutput, Typed: spec.OnTyped, Grace: spec.Grace, Order: &e.order, Exited: spec.OnExit,
		AwaitStreams: spec.AwaitStreams && spec.TTY == nil,
	})
	if err != nil {
		return nil, err
	}
	start := e.host.Start
	if in != nil {
		start = in.in.Start
	}
	child, err := start(ctx, spec, streams.Files())
	if err != nil {
		streams.Close()
		return nil, err
	}
	running, err := streams.Follow(child)
	if err != nil {
		return nil, err
	}
	c := &command{executor: e, Process: running, child: child, run: spec.Run, started: time.Now(),
		shared: in, ended: func() {}}
	if e.Started != nil {
		c.ended = e.Started(child.PID())
	}
	return c, nil
}

// retain returns the log of a process and the function that its output goes to.
func (e *Executor) retain(spec *executor.Spec) (*output.Log, func(executor.Stream, []byte)) {
	next := spec.OnOutput // the Spec itself is not needed for the life of the process
	if spec.Retain == (executor.Retention{}) {
		return e.logs.New(spec.Retain), next
	}
	log, _ := spec.Retain.After.(*output.Log)
	if log == nil {
		log = e.logs.New(spec.Retain)
	}
	log.Allow(spec.Resources.Output)
	return log, func(s executor.Stream, p []byte) {
		log.Write(s, p)
		if next != nil {
			next(s, p)
		}
	}
}

// Close cancels every start, stops every process, waits for the end of their trees, and
// frees what the Executor holds, including the private /tmp. It may be called more than
// once; every call waits.
func (e *Executor) Close() error {
	e.closing.Do(func() { e.closeErr = e.close() })
	return e.closeErr
}

func (e *Executor) close() error {
	e.mu.Lock()
	e.closed = true
	if e.end != nil {
		e.end(ErrClosed)
	}
	for c := range e.running {
		c.Stop()
	}
	e.mu.Unlock()
	e.starting.Wait() // what starts meanwhile stops itself
	e.mu.Lock()
	left := slices.Collect(maps.Keys(e.running))
	e.mu.Unlock()
	for _, c := range left {
		_, _ = c.Wait() // its caller gets the error
	}
	var sandboxes sync.WaitGroup
	for _, s := range e.opened() {
		sandboxes.Go(func() { _ = s.Close() }) // likewise; the kernel takes 10 ms for the end of each
	}
	sandboxes.Wait()
	e.order.Close()
	if err := errors.Join(e.host.Close(), e.logs.Close()); err != nil {
		return fmt.Errorf("cannot close the executor: %w", err)
	}
	return nil
}

// A command is a running command of an Executor.
type command struct {
	*process.Process
	executor *Executor
	child    *child
	calls    *process.Calls
	log      *output.Log
	open     bool // log does not end with the process
	run      string
	started  time.Time
	shared   *shared // in which it runs; nil for none
	ended    func()  // of Executor.Started
}

// Output implements [executor.Process].
func (c *command) Output() executor.Output { return c.log }

// Sandbox implements [executor.Process].
func (c *command) Sandbox() executor.Sandbox { return c.child.Sandbox() }

// Wait implements [executor.Process].
func (c *command) Wait() (*executor.Exit, error) {
	exit, err := c.Process.Wait()
	c.ended()
	if !c.open {
		c.log.End()
	}
	c.executor.mu.Lock()
	delete(c.executor.running, c)
	c.executor.mu.Unlock()
	if c.shared != nil {
		c.shared.left(c)
	}
	return exit, c.calls.Tell(exit, err)
}

// errTwoInputs is the error for a Spec with two standard inputs or outputs.
var errTwoInputs = errors.New("a terminal is standard input and output already; do not set Stdin, Stdout or PipeStdin with TTY")

// check returns an error for a Spec that is invalid on every system, or not supported on this
// one.
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
		{"the program's own name", spec.Arg0}, {"the working directory", spec.Dir}, {"the directory for /tmp", spec.Tmp},
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
	if st, err := os.Stat(spec.Dir); errors.Is(err, fs.ErrNotExist) && spec.Stage != nil {
		return refuse(spec) // the stage may have it
	} else if err != nil {
		return &executor.DirError{Dir: spec.Dir, Err: err}
	} else if !st.IsDir() {
		return &executor.DirError{Dir: spec.Dir, Err: executor.ErrNotDir}
	}
	return refuse(spec)
}

var _ executor.Executor = (*Executor)(nil)
