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
	"github.com/sallyport-dev/sallyport/internal/inputwait"
)

// AwaitInput implements [executor.Process].
func (c *command) AwaitInput(ctx context.Context) (*executor.InputWait, error) {
	ctx, cancel := c.whileRunning(ctx)
	defer cancel(nil)
	var look func() inputwait.Look
	kind := func(k inputwait.Kind) executor.InputKind { return executor.InputKind(k) }
	switch {
	case c.Terminal() != nil:
		look = func() inputwait.Look { return inputwait.Terminal(c.Terminal(), c.child.Processes()) }
	case c.Input() != nil:
		look = func() inputwait.Look { return inputwait.Pipe(c.Input(), c.child.Processes()) }
		kind = func(inputwait.Kind) executor.InputKind { return executor.InputData }
	default:
		return nil, fmt.Errorf("executor: the process has no input to wait for: %w", errors.ErrUnsupported)
	}
	heard := func() inputwait.Look {
		l := look()
		if l.Waiting && !c.AllHeard() {
			return inputwait.Look{Known: true, Why: "there is output that was not handed on yet"}
		}
		return l
	}
	last := func() time.Time { t, _ := c.Activity(); return t }
	next := func() <-chan struct{} { _, c := c.Activity(); return c }
	found, err := inputwait.Await(ctx, heard, last, next)
	if err != nil {
		return nil, err
	}
	return &executor.InputWait{Kind: kind(found.Kind), PID: found.PID, Program: found.Program, Timed: found.Timed}, nil
}

// The times between two looks for ports: nothing tells when one is opened.
const (
	firstPortPause   = 5 * time.Millisecond
	longestPortPause = 100 * time.Millisecond
)

// AwaitPort implements [executor.Process].
func (c *command) AwaitPort(ctx context.Context, known []int) (int, error) {
	ctx, cancel := c.whileRunning(ctx)
	defer cancel(nil)
	own := slices.Contains(c.child.Sandbox().Mechanism, "netns")
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := firstPortPause; ; pause = min(2*pause, longestPortPause) {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-timer.C:
		}
		ports, err := inputwait.ListeningPorts(c.child.Processes(), own)
		if err != nil && ctx.Err() == nil && len(c.child.Processes()) > 0 {
			return 0, fmt.Errorf("executor: cannot tell the ports of the process: %w", errors.Join(err, errors.ErrUnsupported))
		}
		for _, port := range ports {
			if !slices.Contains(known, port) {
				return port, nil
			}
		}
		timer.Reset(pause)
	}
}

// whileRunning returns a context that ends with the command, too.
func (c *command) whileRunning(ctx context.Context) (context.Context, context.CancelCauseFunc) {
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
