// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The reasons for which a command does not run. They are found with errors.Is in
// what [Runner.Run] returns; the text around them says more.
var (
	// ErrForbidden says that rules or policy forbid the command.
	ErrForbidden = errors.New("sallyport: forbidden")
	// ErrRefused says that the command needs an approval that it did not get.
	ErrRefused = errors.New("sallyport: refused")
	// ErrNoSandbox says that the machine cannot build the sandbox that the policy
	// asks for. A *sandbox.UnsupportedError with the details is wrapped with it.
	ErrNoSandbox = errors.New("sallyport: no sandbox")
	// ErrClosed says that the Runner was closed, before the run or during it.
	ErrClosed = errors.New("sallyport: the runner is closed")
)

// A StartError says why a program could not be executed.
type StartError = executor.StartError

// A DirError is a working directory that cannot be used.
type DirError = executor.DirError

// A CmdError reports an invalid Cmd.
type CmdError struct {
	Field  string // of Cmd; empty for the Cmd as a whole
	Reason string // a clause, with the fix
}

// Error returns one sentence that names the field.
func (e *CmdError) Error() string {
	if e.Field == "" {
		return "sallyport: Cmd: " + e.Reason
	}
	return "sallyport: Cmd." + e.Field + ": " + e.Reason
}

// An ExitError is a command that ended with another exit code than 0, for
// those who want package os/exec's habit; see [Result.Err].
type ExitError struct{ Result *Result }

// Error returns one sentence with the exit code or the signal.
func (e *ExitError) Error() string {
	if s := e.Result.Signal; s != 0 {
		return fmt.Sprintf("sallyport: %s: ended by signal %d", e.Result.name(), s)
	}
	return fmt.Sprintf("sallyport: %s: exit code %d", e.Result.name(), e.Result.ExitCode)
}

// A TimeoutError is a command that was ended because its time was up; see
// [Result.Err].
type TimeoutError struct{ Result *Result }

// Error returns one sentence with the time it ran.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("sallyport: %s: timed out after %v", e.Result.name(), e.Result.Duration.Round(time.Millisecond))
}

// Timeout returns true; package net and others look for this method.
func (e *TimeoutError) Timeout() bool { return true }

// A WriterError says that a writer of a [Cmd] did not get everything. The command
// was not affected, and what the Result keeps is complete.
type WriterError struct {
	Missed uint64 // bytes that the writer did not take
	Err    error  // what it returned; nil when it only was too slow
}

// Error returns one sentence with the number of bytes.
func (e *WriterError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("sallyport: the writer failed, %d bytes were not delivered: %v", e.Missed, e.Err)
	}
	return fmt.Sprintf("sallyport: the writer was too slow, %d bytes were not delivered", e.Missed)
}

// Unwrap gives the writer's error.
func (e *WriterError) Unwrap() error { return e.Err }

// noSandbox marks the errors that say that a sandbox cannot be had.
func noSandbox(err error) error {
	var unsupported *sandbox.UnsupportedError
	if errors.As(err, &unsupported) {
		return fmt.Errorf("%w: %w", ErrNoSandbox, err)
	}
	return err
}
