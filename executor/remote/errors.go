// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Class says what failed. The zero Class is ClassSpawn.
type Class uint8

// The classes of errors.
const (
	ClassSpawn     Class = iota // a process was not started: nothing of it runs, or did
	ClassWrite                  // input was not taken
	ClassTerminate              // a process was not ended
	// the end of a process is not known, or whether it ran, as when the connection is lost
	ClassTransport
	ClassUnsupported // the exec-server, or the protocol, cannot do it
)

var classTexts = [...]string{
	"failed to spawn process: ", "failed to write to process: ", "failed to terminate process: ",
	"executor transport failure: failed to wait for process: ", "",
}

// An Error is what failed at an exec-server. It wraps a *jsonrpc.Error, with its code and data, or
// an error of the transport.
type Error struct {
	Class Class
	Err   error // not nil
}

// Error returns one sentence with the class and the reason.
func (e *Error) Error() string {
	text := text.Line(e.Err.Error())
	if errors.As(e.Err, new(*executor.LostError)) {
		return text // a sentence of its own
	}
	if int(e.Class) < len(classTexts) {
		return classTexts[e.Class] + text
	}
	return text
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is [executor.ErrEndUnknown] and the class says so.
func (e *Error) Is(target error) bool {
	return target == executor.ErrEndUnknown && e.Class == ClassTransport
}

// Code returns the code with which the server answered; 0 when it did not.
func (e *Error) Code() int64 {
	var answer *wire.Error
	if errors.As(e.Err, &answer) {
		return answer.Code
	}
	return 0
}

// A LostOutputError reports output that the server did not retain long enough, as while the
// connection was away. The rest of the output was delivered.
type LostOutputError struct {
	// Bytes is how much is lost. Zero means that only the number of chunks is known.
	Bytes uint64
	// Chunks is the number of pieces of output that are lost, of at most 64 KiB each.
	Chunks uint64
}

// Error returns one sentence with the amount.
func (e *LostOutputError) Error() string {
	amount := fmt.Sprintf("%d bytes", e.Bytes)
	if e.Bytes == 0 {
		amount = fmt.Sprintf("%d chunks", e.Chunks)
	}
	return amount + " of the output are lost: the exec-server did not retain them until the connection was resumed"
}

// ErrClosed is returned by Start after Close.
var ErrClosed = errors.New("the executor is closed")

var (
	errInherited = errors.New("remote exec-server does not support inherited file descriptors")
	errResize    = fmt.Errorf("resize is not supported by exec-server sessions: %w", errors.ErrUnsupported)
	errNoAnswer  = errors.New("the start of the process has no answer, and whether it ran is not known")
	errUnmade    = errors.New("the exec-server says of the process that it exists, and does not know it")
	errSandbox   = errors.New("the exec-server does not tell in which sandbox it runs")
	errNoInput   = errors.New("the process has no input that can be written to")
	errNoTTY     = fmt.Errorf("the process has no terminal: %w", errors.ErrUnsupported)
	errCloseIn   = fmt.Errorf("closing the input is not supported by exec-server sessions: %w",
		errors.ErrUnsupported)
	errOrder = errors.New("the exec-server broke the protocol: events of the process are missing that it does not know")
	errFlood = errors.New("the exec-server broke the protocol: too many events of the process came out of order")
)

// refuse returns the error for what the wire cannot say.
func refuse(need, fix string) error {
	return &Error{Class: ClassUnsupported, Err: &sandbox.UnsupportedError{Need: need,
		Have: "exec-server sessions do not support it", Hint: fix}}
}

// refused is the error for a request with the words of other executors. It is a
// *sandbox.UnsupportedError as well.
func refused(words error, need string) error {
	return &Error{Class: ClassUnsupported,
		Err: &worded{words, &sandbox.UnsupportedError{Need: need, Have: words.Error()}}}
}

// A worded error has the text of one error and is two.
type worded struct{ text, also error }

func (e *worded) Error() string   { return e.text.Error() }
func (e *worded) Unwrap() []error { return []error{e.text, e.also} }

// The beginnings of answers to process/start by which the reason is known.
const (
	textNotFound = "No such file or directory (os error 2)"
	textDenied   = "Permission denied (os error 13)"
	textDir      = "the working directory "
	textSandbox  = "sandbox: needs "
)

// startError returns the typed error for an answer to process/start. Servers tell a missing
// program and a missing directory apart by words only, and some do not.
func startError(spec *executor.Spec, err error) error {
	if wire.RefusalOf(err).Reason == wire.ReasonLost {
		return &Error{Class: ClassTransport, Err: new(executor.LostError)}
	}
	failure := &Error{Class: ClassSpawn, Err: err}
	var answer *wire.Error
	if !errors.As(err, &answer) || answer.Code != wire.CodeInternal {
		return failure
	}
	cause, text := error(failure), answer.Message
	missing := strings.HasPrefix(text, textNotFound)
	switch {
	case missing:
		cause = &worded{failure, fs.ErrNotExist}
	case strings.HasPrefix(text, textDenied):
		cause = &worded{failure, fs.ErrPermission}
	}
	if need, rest, ok := strings.Cut(text, textSandbox); ok && need == "" {
		need, have, _ := strings.Cut(rest, ", but ")
		return &worded{failure, &sandbox.UnsupportedError{Need: need, Have: have}}
	}
	if strings.Contains(text, textDir) {
		return &executor.DirError{Dir: spec.Dir, Err: cause}
	}
	return &executor.StartError{Program: spec.Args[0], NotFound: missing, Err: cause}
}
