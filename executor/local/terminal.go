// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/confine"
)

// errTwoInputs refuses a Spec that gives standard streams twice.
var errTwoInputs = errors.New("executor: a terminal takes the place of standard input and output; leave Stdin, Stdout and PipeStdin out")

// terminalOf is the terminal that a Spec asks for.
func terminalOf(spec *executor.Spec) *confine.TTY {
	if spec.TTY == nil {
		return nil
	}
	size := spec.TTY.OrUsual()
	return &confine.TTY{Cols: size.Cols, Rows: size.Rows, Stderr: spec.Stderr != nil}
}

// Resize implements [executor.Resizer].
func (p *process) Resize(s executor.Size) error {
	s = s.OrUsual()
	return p.running.Resize(s.Cols, s.Rows)
}

// SetInputDeadline implements [executor.Deadliner].
func (p *process) SetInputDeadline(t time.Time) error { return p.running.SetInputDeadline(t) }
