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
func (p *process) AwaitInput(ctx context.Context) (*executor.InputWait, error) {
	ctx, cancel := p.whileRunning(ctx)
	defer cancel(nil)
	var look func() inputwait.Look
	kind := func(k inputwait.Kind) executor.InputKind { return executor.InputKind(k) }
	switch {
	case p.running.Terminal() != nil:
		look = func() inputwait.Look { return inputwait.Terminal(p.running.Terminal(), p.child.Processes()) }
	case p.running.Input() != nil:
		look = func() inputwait.Look { return inputwait.Pipe(p.running.Input(), p.child.Processes()) }
		kind = func(inputwait.Kind) executor.InputKind { return executor.InputData }
	default:
		return nil, fmt.Errorf("executor: the process has no input to wait for: %w", errors.ErrUnsupported)
	}
	heard := func() inputwait.Look {
		l := look()
		if l.Waiting && !p.running.AllHeard() {
			return inputwait.Look{Known: true, Why: "there is output that was not handed on yet"}
		}
		return l
	}
	last := func() time.Time { t, _ := p.running.Activity(); return t }
	next := func() <-chan struct{} { _, c := p.running.Activity(); return c }
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
func (p *process) AwaitPort(ctx context.Context, known []int) (int, error) {
	ctx, cancel := p.whileRunning(ctx)
	defer cancel(nil)
	own := slices.Contains(p.child.Sandbox().Mechanism, "netns")
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := firstPortPause; ; pause = min(2*pause, longestPortPause) {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-timer.C:
		}
		ports, err := inputwait.ListeningPorts(p.child.Processes(), own)
		if err != nil && ctx.Err() == nil && len(p.child.Processes()) > 0 {
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
func (p *process) whileRunning(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.running.Ended():
			cancel(os.ErrProcessDone)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
