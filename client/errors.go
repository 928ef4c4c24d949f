// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"os"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// ErrUnknown is what an [Error] is for a run that the server does not know, or not any more.
var ErrUnknown = errors.New("unknown run")

// An Error reports a request that the server refused.
type Error struct {
	// Reason is the word of the protocol for it, such as "unknownRun" or "runLimit"; empty where there is
	// none.
	Reason  string
	Message string // one sentence
	// Taken is how many bytes of a write the command took.
	Taken int
	// ExitCode is that of "sallyport run" for flags or settings that are invalid; else 0.
	ExitCode int

	is error
}

// Error returns the message.
func (e *Error) Error() string { return "exec-server: " + e.Message }

// Unwrap returns [ErrUnknown], [os.ErrProcessDone] for a run that has ended, [os.ErrClosed] for an input that
// is closed, [errors.ErrUnsupported] for what the server or the run does not have, or nil.
func (e *Error) Unwrap() error { return e.is }

// errNoRuns is the error of Dial for a server that has no run/*.
var errNoRuns = &Error{
	Message: "it has no judged runs; it is not an exec-server of sallyport, or an older one",
	is:      errors.ErrUnsupported,
}

// explain turns an answer that refuses a request into an *Error.
func explain(err error) error {
	var answer *wire.Error
	var transport *wire.TransportError
	if err == nil || errors.As(err, &transport) || !errors.As(err, &answer) {
		return err
	}
	r := wire.RefusalOf(err)
	e := &Error{Reason: r.Reason, Message: answer.Message, Taken: r.Taken, ExitCode: r.Exit}
	switch runs.Reason(r.Reason) {
	case runs.Unknown:
		e.is = ErrUnknown
	case runs.Ended:
		e.is = os.ErrProcessDone
	case runs.InputClosed:
		e.is = os.ErrClosed
	case runs.NoTerminal, runs.NoScreen:
		e.is = errors.ErrUnsupported
	}
	if answer.Code == wire.CodeNoMethod {
		e.is = errors.ErrUnsupported
	}
	return e
}

// takenBy returns how much of a write a command took that does not read, and whether that is why.
func takenBy(err error) (n int, full bool) {
	var e *Error
	if errors.As(err, &e) && e.Reason == string(runs.InputFull) {
		return e.Taken, true
	}
	return 0, false
}

// A NotRunError reports a command that does not run.
type NotRunError struct {
	Result *sallyport.Result // what the server says; never nil
}

// Error returns the reason.
func (e *NotRunError) Error() string { return e.Result.Error }

// Unwrap returns [sallyport.ErrForbidden] or [sallyport.ErrRefused] where that is the reason.
func (e *NotRunError) Unwrap() error {
	return map[sallyport.End]error{sallyport.EndForbidden: sallyport.ErrForbidden,
		sallyport.EndRefused: sallyport.ErrRefused}[e.Result.End]
}
