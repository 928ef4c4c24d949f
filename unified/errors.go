// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An ErrorKind says what an [Error] reports. It is an error itself, so that
// errors.Is(err, unified.ErrUnknownProcess) tells the kinds apart.
type ErrorKind string

// The kinds of errors. Where a kind says all, its text is that of the error.
const (
	// ErrArgument is an invalid request: arguments that are malformed, unknown or do not
	// belong together, no command, an impossible directory, an unknown machine.
	ErrArgument ErrorKind = "invalid request"
	// ErrUnavailable says that there is no Runner, or that the tools are closed.
	ErrUnavailable ErrorKind = "unified exec is unavailable in this session"
	// ErrCreate says that a command was not started; the cause is the error of Runner.Start.
	ErrCreate ErrorKind = "Failed to create unified exec process"
	// ErrTooMany says that a command was not started because the session limit is reached.
	ErrTooMany ErrorKind = "session limit reached"
	// ErrUnknownProcess says that a number belongs to no process: there was none, or a
	// response has told its end.
	ErrUnknownProcess ErrorKind = "Unknown process id"
	// ErrFailed says that a process was ended because its surroundings failed: its network
	// was denied, or its executor lost it.
	ErrFailed ErrorKind = "Unified exec process failed"
	// ErrInterrupted says that a call was ended by its context. The process goes on, and the
	// next response has the output so far.
	ErrInterrupted ErrorKind = "the call was interrupted"
	// ErrWrite says that text did not reach a program that still runs.
	ErrWrite ErrorKind = "failed to write to stdin"
	// ErrStdinClosed is text to a command without a terminal whose standard input was not
	// kept open.
	ErrStdinClosed ErrorKind = "stdin is closed for this session; rerun exec_command with tty=true to keep stdin open"
	// ErrNoInterrupt says that the executor does not support signals.
	ErrNoInterrupt ErrorKind = "process interrupt is not supported by this process backend"
	// ErrDenied says that a command failed and the sandbox denied it an access. It is never
	// the kind of an error of a call; see [Response.Denied].
	ErrDenied ErrorKind = "Command denied by sandbox"
)

// Error returns the text of the kind.
func (k ErrorKind) Error() string { return string(k) }

// An Error is what the tools report. Its text is that of Codex, which models know; it has no
// prefix because the answer of the tool, [ExecText] and [WriteText], has one.
type Error struct {
	Kind      ErrorKind
	Message   string           // the whole text; empty for that of Kind
	SessionID int              // of ErrInterrupted and ErrUnknownProcess
	Accepted  int              // bytes that reached the program, of ErrWrite
	Max       int              // the session limit, of ErrTooMany
	Denials   []sandbox.Denial // of ErrDenied: facts, or guesses that say so
	// Candidates are the processes that can be ended, the one that was idle for longest
	// first, of ErrTooMany.
	Candidates []Info
	Err        error // the cause; may be nil
}

// Error returns Message, or the text of Kind.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Kind.Error()
	}
	return e.Message
}

// Is reports whether target is the kind of the error.
func (e *Error) Is(target error) bool { return target == e.Kind }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

func unavailable() error { return &Error{Kind: ErrUnavailable} }

// invalid is an ErrArgument with a text of its own.
func invalid(format string, args ...any) error {
	return &Error{Kind: ErrArgument, Message: fmt.Sprintf(format, args...)}
}

// badArgument is an ErrArgument about an argument of a tool, or with an empty name about all
// of them. The reason is a clause, the cause may be nil.
func badArgument(tool, name, reason string, cause error) error {
	s := tool + ": invalid arguments: " + reason
	if name != "" {
		s = fmt.Sprintf("%s: invalid argument `%s`: %s", tool, name, reason)
	}
	return &Error{Kind: ErrArgument, Message: text.Line(s), Err: cause}
}

func notCreated(cause error) error {
	return &Error{Kind: ErrCreate, Message: ErrCreate.Error() + ": " + text.Lines(cause.Error()), Err: cause}
}

func failed(message string, cause error) error {
	return &Error{Kind: ErrFailed, Message: ErrFailed.Error() + ": " + text.Lines(message), Err: cause}
}

func unknownProcess(id int) error {
	return &Error{Kind: ErrUnknownProcess, Message: fmt.Sprintf("%s %d", ErrUnknownProcess, id),
		SessionID: id}
}

func interrupted(id int, cause error) error {
	return &Error{Kind: ErrInterrupted, SessionID: id, Err: cause,
		Message: fmt.Sprintf("%s, and the process goes on as session %d: %s", ErrInterrupted, id,
			text.Line(fmt.Sprint(cause)))}
}

func notWritten(accepted int, cause error) error {
	e := &Error{Kind: ErrWrite, Accepted: accepted, Err: cause}
	if accepted > 0 {
		e.Message = fmt.Sprintf("%s; the first %d bytes were accepted", ErrWrite, accepted)
	}
	return e
}

// tooManyOf is an ErrTooMany; the cause is that of the Runner, or nil if the tools refused.
func tooManyOf(most int, candidates []Info, cause error) error {
	const shown = 8
	var b strings.Builder
	fmt.Fprintf(&b, "session limit (%d) reached; end a process first", most)
	for i, c := range candidates {
		if i == shown {
			fmt.Fprintf(&b, " and %d more", len(candidates)-i)
			break
		}
		sep := ", "
		if i == 0 {
			sep = ", such as the one that was idle for longest: "
		}
		fmt.Fprintf(&b, "%ssession %d (%s)", sep, c.SessionID, oneLine(c.Command))
	}
	return &Error{Kind: ErrTooMany, Message: b.String(), Max: most, Candidates: candidates, Err: cause}
}

// oneLine returns the beginning of a command, for a sentence.
func oneLine(command string) string {
	const most = 60 // characters
	line := []rune(text.Line(strings.Join(strings.Fields(command), " ")))
	if len(line) > most {
		return string(line[:most-1]) + "…"
	}
	return string(line)
}

// ExecText returns the answer to a call of exec_command that failed.
func ExecText(command string, err error) string {
	return text.Lines(fmt.Sprintf("exec_command failed for `%s`: %v", command, err))
}

// WriteText returns the answer to a call of write_stdin that failed.
func WriteText(err error) string { return text.Lines("write_stdin failed: " + err.Error()) }
