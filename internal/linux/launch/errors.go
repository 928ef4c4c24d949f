// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrClosed is returned by a Launcher that was closed.
var ErrClosed = errors.New("launch: the launcher is closed")

// ScriptError reports a mistake in a script, found before anything was started.
type ScriptError struct {
	Step   int // from 0
	Reason string
}

func (e *ScriptError) Error() string {
	return fmt.Sprintf("launch: step %d: %s", e.Step+1, e.Reason)
}

// CgroupError reports that a task could not enter its control group. Nothing of
// the launch is left when it is returned.
type CgroupError struct{ Err error }

func (e *CgroupError) Error() string {
	return fmt.Sprintf("launch: enter a control group: %v", e.Err)
}

// Unwrap returns the kernel's error.
func (e *CgroupError) Unwrap() error { return e.Err }

// StepError reports a step that the kernel denied. Nothing of the launch is left
// when it is returned.
type StepError struct {
	Index int    // which step, from 0; -1 for the clone itself
	Step  Step   // the step
	Call  string // the system call, or "compare" for a check
	Errno syscall.Errno
}

func (e *StepError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("launch: %s: %v", e.Call, e.Errno)
	}
	what := e.Step.Op.String()
	if e.Step.Path != "" {
		what += " " + quote(e.Step.Path)
	}
	if e.Step.Label != "" {
		what += " (" + e.Step.Label + ")"
	}
	if e.Call == "compare" {
		return fmt.Sprintf("launch: step %d, %s: replaced while the sandbox was built", e.Index+1, what)
	}
	if e.Step.Op == OpRefuseWrite {
		return fmt.Sprintf("launch: step %d, %s: it can be opened for writing", e.Index+1, what)
	}
	return fmt.Sprintf("launch: step %d, %s: %s: %v", e.Index+1, what, e.Call, e.Errno)
}

// Unwrap returns the errno, so that errors.Is(err, fs.ErrNotExist) and the like work.
func (e *StepError) Unwrap() error { return e.Errno }
