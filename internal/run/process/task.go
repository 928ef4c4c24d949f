// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
)

// A Task is a process that a function of this process is. It reads no input. A signal that asks for the end
// stops it, as it would a program, and so does Stop.
type Task struct {
	cancel  context.CancelFunc
	signal  atomic.Int32 // the first one of those; 0 before
	sandbox executor.Sandbox
	log     *output.Log
	ended   chan struct{}
	exit    *executor.Exit
}

// Perform starts do as the command of a spec.
func Perform(spec *executor.Spec, in executor.Sandbox, do executor.Task) *Task {
	own, calls := Guard(spec)
	ctx, cancel := context.WithCancel(context.Background())
	t := &Task{cancel: cancel, sandbox: in, ended: make(chan struct{}),
		log: output.NewLog(max(spec.Retain.Memory, 0), nil, nil)}
	writer := func(s executor.Stream, file *os.File) io.Writer {
		if file != nil {
			return file
		}
		return writerFunc(func(p []byte) (int, error) {
			t.log.Write(s, p)
			if own.OnOutput != nil {
				own.OnOutput(s, p)
			}
			return len(p), nil
		})
	}
	go func() {
		defer close(t.ended)
		defer cancel()
		t.exit = do(ctx, writer(executor.Stdout, spec.Stdout), writer(executor.Stderr, spec.Stderr))
		if t.exit == nil {
			t.exit = t.stopped()
		}
		t.log.End()
		if own.OnExit != nil {
			own.OnExit(t.exit.Code, 0)
		}
		t.exit.Sandbox = in
		_ = calls.Tell(t.exit, nil)
	}()
	return t
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Write implements [executor.Process].
func (t *Task) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// CloseInput implements [executor.Process].
func (t *Task) CloseInput() error { return nil }

// SetInputDeadline implements [executor.Process].
func (t *Task) SetInputDeadline(time.Time) error { return nil }

// Resize implements [executor.Process].
func (t *Task) Resize(executor.Size) error { return os.ErrProcessDone }

// Signal implements [executor.Process].
func (t *Task) Signal(sig int) error {
	select {
	case <-t.ended:
		return os.ErrProcessDone
	default:
	}
	if AsksToEnd(sig) {
		t.signal.CompareAndSwap(0, int32(sig)) //nolint:gosec // it is one of four
		t.cancel()
	}
	return nil
}

// stopped is the end of a task that did nothing.
func (t *Task) stopped() *executor.Exit {
	const by = 128
	if sig := int(t.signal.Load()); sig != 0 {
		return &executor.Exit{Code: by + sig, Signal: sig}
	}
	sig := int(syscall.SIGTERM)
	return &executor.Exit{Code: by + sig, Signal: sig, Stopped: true, LastSignal: sig}
}

// AwaitInput implements [executor.Process].
func (t *Task) AwaitInput(ctx context.Context) (*executor.InputWait, error) { return nil, t.done(ctx) }

// AwaitPort implements [executor.Process].
func (t *Task) AwaitPort(ctx context.Context, _ []int) (int, error) { return 0, t.done(ctx) }

func (t *Task) done(ctx context.Context) error {
	select {
	case <-t.ended:
		return os.ErrProcessDone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Output implements [executor.Process].
func (t *Task) Output() executor.Output { return t.log }

// Sandbox implements [executor.Process].
func (t *Task) Sandbox() executor.Sandbox { return t.sandbox }

// Stop implements [executor.Process].
func (t *Task) Stop() { t.cancel() }

// Wait implements [executor.Process].
func (t *Task) Wait() (*executor.Exit, error) {
	<-t.ended
	return t.exit, nil
}
