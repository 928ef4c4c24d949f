// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// Ended is a process of which only a log is left: it has ended, or was lost.
type Ended struct {
	Log  executor.Output
	Box  executor.Sandbox
	Exit executor.Exit
	Err  error // an [executor.LostError] where the end is not known; else nil
	// Done is closed when all of Log is there; nil means that it is.
	Done <-chan struct{}
}

func (p *Ended) Write([]byte) (int, error)        { return 0, os.ErrProcessDone }
func (p *Ended) CloseInput() error                { return nil }
func (p *Ended) SetInputDeadline(time.Time) error { return errors.ErrUnsupported }
func (p *Ended) Resize(executor.Size) error       { return os.ErrProcessDone }
func (p *Ended) Signal(int) error                 { return os.ErrProcessDone }
func (p *Ended) Output() executor.Output          { return p.Log }
func (p *Ended) Sandbox() executor.Sandbox        { return p.Box }
func (p *Ended) Stop()                            {}

// Wait implements [executor.Process].
func (p *Ended) Wait() (*executor.Exit, error) {
	if p.Done != nil {
		<-p.Done
	}
	exit := p.Exit
	return &exit, p.Err
}

// AwaitInput implements [executor.Process].
func (p *Ended) AwaitInput(context.Context) (*executor.InputWait, error) {
	return nil, os.ErrProcessDone
}

// AwaitPort implements [executor.Process].
func (p *Ended) AwaitPort(context.Context, []int) (int, error) { return 0, os.ErrProcessDone }
