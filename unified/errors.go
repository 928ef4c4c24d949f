// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The errors without details. Their texts, and those of the types below, are those of
// Codex, which models know; they have no prefix because the answer of the tool, [ExecText]
// and [WriteText], has one.
//
//nolint:staticcheck // the texts are a contract
var (
	// ErrUnavailable says that there is no Runner, or that the tools are closed.
	ErrUnavailable = errors.New("unified exec is unavailable in this session")
	// ErrNoCommand is the error for an empty command.
	ErrNoCommand = errors.New("missing command line for unified exec request")
	// ErrStdinClosed is the error for text to a command without a terminal whose
	// standard input was not kept open.
	ErrStdinClosed = errors.New("stdin is closed for this session; rerun exec_command with tty=true to keep stdin open")
	// ErrNoInterrupt says that the executor does not support signals.
	ErrNoInterrupt = errors.New("process interrupt is not supported by this process backend")
	// ErrJustificationAlone is the error for a justification without a wish.
	ErrJustificationAlone = errors.New("`justification` requires an explicit `sandbox_permissions`; use `sandbox_permissions: \"require_escalated\"` for unsandboxed execution, or omit `justification`.")
	// ErrAdditionalAlone is the error for single permissions without the wish for them.
	ErrAdditionalAlone = errors.New("`additional_permissions` requires `sandbox_permissions` set to `with_additional_permissions`")
	// ErrAdditionalMissing and ErrAdditionalEmpty are the errors for a wish for single
	// permissions without any.
	ErrAdditionalMissing = errors.New("missing `additional_permissions`; provide at least one of `network` or `file_system` when using `with_additional_permissions`")
	ErrAdditionalEmpty   = errors.New("`additional_permissions` must include at least one requested permission in `network` or `file_system`")
	// ErrAdditionalDisabled is the error for a wish for single permissions where the Tools do
	// not take one.
	ErrAdditionalDisabled = errors.New("additional permissions are disabled; enable features.exec_permission_approvals before using with_additional_permissions")
)

// A CreateError reports that a command was not started.
type CreateError struct {
	Err error // the error of Runner.Start
}

// Error returns the sentence of the contract with the reason.
func (e *CreateError) Error() string {
	return "Failed to create unified exec process: " + printable.Lines(e.Err.Error())
}

// Unwrap gives the reason.
func (e *CreateError) Unwrap() error { return e.Err }

// A FailedError reports that a process was ended because its surroundings failed: its
// network was denied, or its executor lost it.
type FailedError struct {
	Message string
	Err     error // the cause; may be nil
}

// Error returns the sentence of the contract with the message.
func (e *FailedError) Error() string {
	return "Unified exec process failed: " + printable.Lines(e.Message)
}

// Unwrap gives the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// An UnknownProcessError reports that a number belongs to no process: there was none, or a
// response has told its end.
type UnknownProcessError struct{ ID int }

// Error returns the sentence of the contract with the number.
func (e *UnknownProcessError) Error() string { return fmt.Sprintf("Unknown process id %d", e.ID) }

// A WriteError reports that text did not reach a program that still runs.
type WriteError struct {
	Accepted int   // bytes that reached it
	Err      error // the cause
}

// Error returns the sentence of the contract, and how much was accepted if anything was.
func (e *WriteError) Error() string {
	if e.Accepted == 0 {
		return "failed to write to stdin"
	}
	return fmt.Sprintf("failed to write to stdin; the first %d bytes were accepted", e.Accepted)
}

// Unwrap gives the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// A DeniedError reports that a command failed and the sandbox denied it an access. It is
// never the error of a call; see [Response.Denied].
type DeniedError struct {
	Message string           // the output, or the exit code if there was none
	Denials []sandbox.Denial // facts, or guesses that say so
}

// Error returns the sentence of the contract with the message.
func (e *DeniedError) Error() string { return "Command denied by sandbox: " + e.Message }

// An InvalidPathError reports a path that cannot exist on a system.
type InvalidPathError struct{ Path, System string }

// Error returns the sentence of the contract.
func (e *InvalidPathError) Error() string {
	return fmt.Sprintf("%s is not valid on %s", printable.Line(strings.ReplaceAll(e.Path, "\x00", `\0`)), e.System)
}

// An UnknownEnvironmentError reports a request for a machine that does not exist.
type UnknownEnvironmentError struct{ ID string }

// Error returns the sentence of the contract.
func (e *UnknownEnvironmentError) Error() string {
	return fmt.Sprintf("unknown turn environment id `%s`", printable.Line(e.ID))
}

// A TooManyError reports that a command was not started because the session limit is
// reached.
type TooManyError struct {
	Max int
	// Candidates are the processes that can be ended, the one that was idle for longest
	// first.
	Candidates []Info
	Err        error // of the Runner; nil if the tools themselves refused
}

// shownCandidates is how many processes the text of a TooManyError names.
const shownCandidates = 8

// Error returns one sentence with the first candidates.
func (e *TooManyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "session limit (%d) reached; end a process first", e.Max)
	for i, c := range e.Candidates {
		if i == shownCandidates {
			fmt.Fprintf(&b, " and %d more", len(e.Candidates)-i)
			break
		}
		sep := ", "
		if i == 0 {
			sep = ", such as the one that was idle for longest: "
		}
		fmt.Fprintf(&b, "%ssession %d (%s)", sep, c.SessionID, oneLine(c.Command))
	}
	return b.String()
}

// Unwrap gives the error of the Runner.
func (e *TooManyError) Unwrap() error { return e.Err }

// mostCommand is how much of a command a sentence has, in characters.
const mostCommand = 60

// oneLine returns a command for a sentence.
func oneLine(command string) string {
	line := []rune(printable.Line(strings.Join(strings.Fields(command), " ")))
	if len(line) > mostCommand {
		return string(line[:mostCommand-1]) + "…"
	}
	return string(line)
}

// ExecText returns the answer to a call of exec_command that failed.
func ExecText(command string, err error) string {
	return printable.Lines(fmt.Sprintf("exec_command failed for `%s`: %v", command, err))
}

// WriteText returns the answer to a call of write_stdin that failed.
func WriteText(err error) string { return printable.Lines("write_stdin failed: " + err.Error()) }
