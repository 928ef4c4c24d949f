// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/notes"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The exit codes of our own; those of programs are 0 to 255 too, as with
// env(1) and timeout(1), whose numbers these are where they have one.
const (
	codeOK          = 0
	codeNo          = 1   // the answer to a question is no
	codeUnavailable = 121 // no sandbox of the level that was asked for
	codeForbidden   = 122
	codeRefused     = 123
	codeTimedOut    = 124
	codeFailed      = 125 // our own error, usage included
	codeCannotRun   = 126
	codeNotFound    = 127
)

// exitCode ends an invocation with a code and without a message: the program's own,
// or one whose message was printed. Zero is success.
type exitCode int

func (c exitCode) Error() string { return "exit" }

// A userError is an error in the form that people read, with its exit code.
type userError struct {
	code int
	end  sallyport.End // how the run is reported to have ended
	text string
	fix  string // what to do about it, a clause; may be empty
}

func (e *userError) Error() string { return e.String() }

func (e *userError) String() string {
	if e.fix == "" {
		return e.text
	}
	return e.text + "; " + e.fix
}

// failure returns an error of our own, such as a command line that is invalid.
func failure(format string, args ...any) error {
	return &userError{code: codeFailed, end: sallyport.EndFailed, text: fmt.Sprintf(format, args...)}
}

// cannotWrite returns the error for standard output that cannot be written.
func cannotWrite(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return failure("cannot write standard output: the reader has closed it")
	}
	return failure("cannot write standard output: %v", cause(err))
}

// classify puts an error into the form that people read.
func classify(err error) *userError {
	var (
		own         *userError
		ceiling     *config.CeilingError
		start       *executor.StartError
		unsupported *sandbox.UnsupportedError
		hidden      *sandbox.HiddenError
		interrupted *sallyport.InterruptedError
	)
	switch {
	case errors.As(err, &interrupted):
		return &userError{128 + interrupted.Signal, sallyport.EndCanceled, oneLine(err), ""}
	case errors.As(err, &own):
		return own
	case errors.As(err, &ceiling):
		return &userError{codeForbidden, sallyport.EndForbidden, oneLine(err), ""}
	case errors.As(err, &unsupported):
		return &userError{codeUnavailable, sallyport.EndUnavailable, "sandbox not available: needs " + unsupported.Need + ", but " + unsupported.Have, unsupported.Hint}
	case errors.Is(err, sallyport.ErrNoSandbox):
		return &userError{codeUnavailable, sallyport.EndUnavailable, oneLine(err), "run sallyport doctor to see what is missing"}
	case errors.Is(err, sallyport.ErrForbidden):
		return &userError{codeForbidden, sallyport.EndForbidden, oneLine(err), ""}
	case errors.Is(err, sallyport.ErrRefused):
		return &userError{codeRefused, sallyport.EndRefused, oneLine(err), ""}
	case errors.As(err, &start) && start.NotFound:
		return notFound(start)
	case errors.As(err, &start):
		text, fix := cannotRun(start.Err)
		return &userError{codeCannotRun, sallyport.EndFailed, printable.Word(start.Program) + ": " + text, fix}
	case errors.As(err, &hidden):
		text, fix := cannotRun(err)
		return &userError{codeFailed, sallyport.EndFailed, text, fix}
	}
	return &userError{codeFailed, sallyport.EndFailed, oneLine(err), ""}
}

// notFound is classify for programs that were not found.
func notFound(start *executor.StartError) *userError {
	e := &userError{code: codeNotFound, end: sallyport.EndNotFound, text: oneLine(start.Err)}
	var looked *fs.PathError
	switch {
	case errors.Is(start.Err, executor.ErrPrivateTmp):
		e.fix = "use --tmp host"
	case !errors.Is(start.Err, fs.ErrNotExist):
	case errors.As(start.Err, &looked):
		e.text = printable.Word(start.Program) + ": no such file"
	default: // it exists outside, and then the kernel missed something
		e.text = printable.Word(start.Program) + ": not found inside the sandbox (the program or its interpreter)"
		e.fix = "check its first line"
	}
	return e
}

// cannotRun explains why a program that exists cannot be executed.
func cannotRun(err error) (text, fix string) {
	var hidden *sandbox.HiddenError
	switch {
	case errors.As(err, &hidden):
		return hidden.What + " " + printable.Word(hidden.Path) + " is hidden by the policy", "allow with --ro " + notes.ShellWord(hidden.Path)
	case errors.Is(err, syscall.E2BIG):
		return "arguments and environment are too long for this system", "pass large data in a file or on standard input"
	case errors.Is(err, syscall.EISDIR):
		return "is a directory", ""
	case errors.Is(err, fs.ErrPermission):
		return "permission denied", "check that it is executable (chmod +x) and that the policy lets it be read"
	case errors.Is(err, syscall.ENOEXEC):
		return "not a program for this system", "a script needs a first line such as #!/bin/sh"
	}
	return "cannot be executed: " + cause(err).Error(), ""
}

// oneLine returns the text of an error as one line without the name of the
// product, which is printed in front of it.
func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "sallyport: ")), " ")
}

// cause returns the system's error without operation and path, which our
// message names itself.
func cause(err error) error {
	var path *fs.PathError
	var call *os.SyscallError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &call):
		return call.Err
	}
	return err
}

// quote returns s in quotes, with what does not print escaped, and shortened when it
// is long.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}
