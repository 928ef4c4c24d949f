// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// errTwoInputs refuses a Spec that gives standard streams twice.
var errTwoInputs = errors.New("executor: a terminal takes the place of standard input and output; leave Stdin, Stdout and PipeStdin out")

// Resize implements [executor.Process].
func (p *process) Resize(s executor.Size) error {
	s = s.OrUsual()
	return p.running.Resize(s.Cols, s.Rows)
}

// SetInputDeadline implements [executor.Deadliner].
func (p *process) SetInputDeadline(t time.Time) error { return p.running.SetInputDeadline(t) }
