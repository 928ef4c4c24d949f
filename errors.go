// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The reasons why a command does not run, for errors.Is. The error around them has the
// details.
var (
	// ErrForbidden says that rules or policy forbid the command.
	ErrForbidden = errors.New("sallyport: forbidden")
	// ErrRefused says that the command needs an approval that it did not get.
	ErrRefused = errors.New("sallyport: refused")
	// ErrNoSandbox says that the sandbox that the policy asks for is not available. It
	// comes with a *sandbox.UnsupportedError that has the cause and the fix.
	ErrNoSandbox = errors.New("sallyport: no sandbox")
	// ErrEndUnknown says that the command may have run and that its end is not known, as when an
	// answer of another machine is lost: to run it again could run it twice. It does not come with
	// the other errors here.
	ErrEndUnknown = executor.ErrEndUnknown
	// ErrClosed says that the Runner was closed, before the run or during it.
	ErrClosed = errors.New("sallyport: the runner is closed")
	// ErrNoContext says that the context of a call is nil. Nothing was done.
	ErrNoContext = strict.ErrNoContext
)

// A PanicError says that a function or value of the caller, such as Cmd.Stdin, panicked or ended its
// goroutine when it was called: its field Where names it, Value is that of the panic, and At where it was.
type PanicError = strict.PanicError

// A StartError says why a program could not be executed.
type StartError = executor.StartError

// A LostError says that the machine that ran a command was lost. The [End] is EndLost then.
type LostError = executor.LostError

// A DirError is a working directory that cannot be used.
type DirError = executor.DirError

// An AuditError says that Runner.Audit did not keep what happened, where that is required. Beside a Result
// the command ran; without one it did not.
type AuditError struct{ Err error }

// Error returns one sentence.
func (e *AuditError) Error() string {
	return "sallyport: the audit log is required and cannot be written: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *AuditError) Unwrap() error { return e.Err }

// A CmdError reports an invalid Cmd.
type CmdError struct {
	Field  string // of Cmd; empty for the Cmd as a whole
	Reason string // a clause, with the fix
}

// Error returns one sentence that names the field.
func (e *CmdError) Error() string {
	if e.Field == "" {
		return "sallyport: Cmd: " + text.Line(e.Reason)
	}
	return "sallyport: Cmd." + e.Field + ": " + text.Line(e.Reason)
}

// An ExitError reports a command that ended with an exit code other than 0; see
// [Result.Err].
type ExitError struct{ Result *Result }

// Error returns one sentence with the exit code or the signal.
func (e *ExitError) Error() string {
	if s := e.Result.Signal; s != 0 {
		return fmt.Sprintf("sallyport: %s: ended by signal %d", e.Result.name(), s)
	}
	return fmt.Sprintf("sallyport: %s: exit code %d", e.Result.name(), e.Result.ExitCode)
}

// A TimeoutError reports a command that exceeded its time limit; see [Result.Err].
type TimeoutError struct{ Result *Result }

// Error returns one sentence with the time it ran.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("sallyport: %s: timed out after %v", e.Result.name(),
		e.Result.Duration.Round(time.Millisecond))
}

// Timeout returns true, as [net.Error] has it.
func (e *TimeoutError) Timeout() bool { return true }

// A VariableError reports an environment variable that is needed and not set.
type VariableError struct {
	Name string
	By   string // what names it, such as a key of the configuration
}

// Error returns one sentence with the names.
func (e *VariableError) Error() string {
	return "Missing environment variable: `" + text.Line(e.Name) + "`, named by " +
		text.Line(e.By) + "; set it"
}

// A RuleError reports that a command does not run because of a rule: it wraps [ErrForbidden], or
// [ErrRefused] where the rule prompts and there was no approval.
type RuleError struct {
	Rule Rule
	Err  error // never nil
}

// Error returns the sentence of Err and the place of the rule.
func (e *RuleError) Error() string {
	place := rules.Pos{File: e.Rule.File, Line: e.Rule.Line, Col: e.Rule.Column}
	return e.Err.Error() + " (rule " + text.Line(place.String()) + ")"
}

// Unwrap returns Err.
func (e *RuleError) Unwrap() error { return e.Err }

// An InterruptedError reports that a signal in Cmd.Signals that asks for the end came while a
// question was open. It is [context.Canceled].
type InterruptedError struct{ Signal int }

// Error returns one sentence with the number.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("signal %d came while a question was open", e.Signal)
}

// Is reports whether target is [context.Canceled].
func (e *InterruptedError) Is(target error) bool { return target == context.Canceled }

// An ApprovalError reports that a command did not run although questions about it were decided:
// it has their answers, in their order.
type ApprovalError struct {
	Approvals []event.ApprovalDecided
	Err       error // never nil
}

// Error returns the sentence of Err.
func (e *ApprovalError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ApprovalError) Unwrap() error { return e.Err }

// A ReaderError reports that not all of Cmd.Stdin reached the command, for which the input was at its
// end there.
type ReaderError struct{ Err error } // what the reader said, or who takes the input; never nil

// Error returns one sentence with the cause.
func (e *ReaderError) Error() string {
	return "sallyport: the input of the command is not complete: " + text.Line(e.Err.Error())
}

// Unwrap returns Err.
func (e *ReaderError) Unwrap() error { return e.Err }

// A WriterError reports that a writer of a [Cmd] did not get everything. The command
// was not affected, and the output in the Result is complete.
type WriterError struct {
	Missed uint64 // bytes that the writer did not take
	Err    error  // the writer's error; nil when it was only too slow
}

// Error returns one sentence with the number of bytes.
func (e *WriterError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("sallyport: the writer failed, %d bytes were not delivered: %s", e.Missed,
			text.Line(e.Err.Error()))
	}
	return fmt.Sprintf("sallyport: the writer was too slow, %d bytes were not delivered", e.Missed)
}

// Unwrap returns the writer's error.
func (e *WriterError) Unwrap() error { return e.Err }

// noSandbox adds ErrNoSandbox to errors that say that a sandbox is not available.
func noSandbox(err error) error {
	var unsupported *sandbox.UnsupportedError
	if errors.As(err, &unsupported) {
		return fmt.Errorf("%w: %w", ErrNoSandbox, err)
	}
	return err
}
