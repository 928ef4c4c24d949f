// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// AwaitInput implements [executor.Process].
func (c *command) AwaitInput(ctx context.Context) (*executor.InputWait, error) {
	ctx, cancel := c.whileRunning(ctx)
	defer cancel(nil)
	if c.Terminal() == nil && c.InputPipe() == nil { // it never waits for input
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	found, err := tasks.Await(ctx, c.look, c.LastActivity, c.NextOutput)
	if err != nil {
		return nil, err
	}
	return c.inputWait(&found), nil
}

// look takes one look whether the command waits for input.
func (c *command) look() (l tasks.Look) {
	switch {
	case c.Terminal() != nil:
		l = tasks.Terminal(c.Terminal(), c.child.Processes())
	case c.InputPipe() != nil:
		l = tasks.Pipe(c.InputPipe(), c.child.Processes())
	}
	if l.Waiting && !c.Delivered() {
		return tasks.Look{Known: true, Why: "there is output that was not delivered yet"}
	}
	return l
}

func (c *command) inputWait(found *tasks.Look) *executor.InputWait {
	kind := executor.InputKind(found.Kind)
	if c.Terminal() == nil {
		kind = executor.InputData
	}
	return &executor.InputWait{Kind: kind, PID: found.PID, Program: found.Program, Timed: found.Timed}
}

// Now returns what the command does at this moment, see [process.NowOf]. It does not wait.
func (c *command) Now() (now process.Now) {
	child, ok := any(c.child).(interface {
		Load() (time.Duration, int64, bool)
	})
	if !ok { // of another system than Linux
		return now
	}
	cpu, memory, ok := child.Load()
	if !ok {
		return now
	}
	now.CPU, now.Memory = &cpu, &memory
	if l := c.look(); l.Waiting {
		now.Input = c.inputWait(&l)
	}
	return now
}

// The time between two looks for ports: the kernel tells no one when a port opens.
const (
	minPortPause = 5 * time.Millisecond
	maxPortPause = 100 * time.Millisecond
)

// AwaitPort implements [executor.Process].
func (c *command) AwaitPort(ctx context.Context, known []int) (int, error) {
	ctx, cancel := c.whileRunning(ctx)
	defer cancel(nil)
	in := c.child.Sandbox()
	own := slices.Contains(in.Mechanism, "netns") && !in.Shared // else others listen there
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := minPortPause; ; pause = min(2*pause, maxPortPause) {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-timer.C:
		}
		ports, err := tasks.ListeningPorts(c.child.Processes(), own)
		if err != nil && ctx.Err() == nil && len(c.child.Processes()) > 0 {
			return 0, fmt.Errorf("cannot tell the ports of the process: %w",
				errors.Join(err, errors.ErrUnsupported))
		}
		for _, port := range ports {
			if !slices.Contains(known, port) {
				return port, nil
			}
		}
		timer.Reset(pause)
	}
}

// whileRunning returns a context that also ends with the command. For a nil one it has ended.
func (c *command) whileRunning(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	if err := strict.CheckContext(ctx); err != nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(err)
		return ctx, cancel
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.Ended():
			cancel(os.ErrProcessDone)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
