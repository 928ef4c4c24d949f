// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"errors"
	"fmt"
	"os"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/process"
)

// A Reason says why a request about a run was refused. It is a word for programs.
type Reason string

// The reasons.
const (
	Unknown     Reason = "unknownRun"  // the owner has no such run
	Limit       Reason = "runLimit"    // the owner has as many live runs as possible
	Closed      Reason = "closing"     // the table was closed
	Invalid     Reason = "invalid"     // the run that is asked for, or the condition of a wait
	InputClosed Reason = "inputClosed" // it has no input that can be written to
	InputFull   Reason = "inputFull"   // it does not read
	Ended       Reason = "ended"       // it has ended
	Running     Reason = "running"     // it has not
	Starting    Reason = "starting"    // it has not begun, and may wait for an approval
	NoTerminal  Reason = "noTerminal"
	NoScreen    Reason = "noScreen"
	Failed      Reason = "failed" // an error of the system

	UnknownSandbox Reason = "unknownSandbox" // the owner has no sandbox of that name

	UnknownQuestion Reason = "unknownQuestion" // it is not open, or nothing is remembered of it
	OtherQuestion   Reason = "otherQuestion"   // the answer is to another one with the ID
	NotOffered      Reason = "notOffered"      // the question does not take the answer
)

// An Error reports a request that was refused.
type Error struct {
	Reason Reason
	Err    error // never nil
	Taken  int   // how many bytes of a write were taken
	// ExitCode is that of "sallyport run" for a run that is Invalid; else 0.
	ExitCode int
	// By is who has answered a question that is unknown, as [approval.AnsweredError] has it; else empty.
	By approval.Source
}

// Error returns one sentence.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func refuse(why Reason, format string, args ...any) *Error {
	return &Error{Reason: why, Err: fmt.Errorf(format, args...)}
}

// failedCode is the exit code of "sallyport run" for an error that has no other one.
const failedCode = 125

// NotRun returns the error for what does not run because of what was asked for or set. It has the exit code
// of err, if that has one.
func NotRun(err error) *Error {
	e := &Error{Reason: Invalid, Err: err, ExitCode: failedCode}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		e.ExitCode = coded.ExitCode()
	}
	return e
}

func errClosing() *Error { return refuse(Closed, "the server is closing") }

func (r *Run) ended() *Error { return refuse(Ended, "run %s has ended", r.id) }

// inputError returns why a write took only some bytes; nil for no error.
func (r *Run) inputError(taken int, err error) error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrProcessDone):
		e = r.ended()
	case errors.Is(err, sallyport.ErrInputFull), errors.Is(err, process.ErrInputFull):
		e = refuse(InputFull, "run %s does not read its input, which is full; %d bytes were taken, write the rest later", r.id, taken)
	case errors.Is(err, sallyport.ErrInputClosed), errors.Is(err, process.ErrInputEnded):
		e = refuse(InputClosed, "run %s takes no input: it was started without `tty` and `openStdin`, or its input was closed", r.id)
	default:
		e = refuse(Failed, "cannot write to run %s: %w", r.id, err)
	}
	e.Taken = taken
	return e
}
