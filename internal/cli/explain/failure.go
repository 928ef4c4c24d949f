// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/programs"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The exit codes of our own; those of programs are 0 to 255 too, as with
// env(1) and timeout(1), whose numbers these are where they have one.
const (
	CodeOK          = 0
	CodeNo          = 1   // the answer to a question is no
	CodeUnavailable = 121 // no sandbox of the level that was asked for
	CodeForbidden   = 122
	CodeRefused     = 123
	CodeTimedOut    = 124
	CodeFailed      = 125 // our own error, usage included
	CodeCannotRun   = 126
	CodeNotFound    = 127
)

// ExitCode ends an invocation with a code and without a message: the program's own,
// or one whose message was printed. Zero is success.
type ExitCode int

func (c ExitCode) Error() string { return "exit" }

// A SignalExit ends an invocation as a signal does, which ended the program or was sent to end it.
type SignalExit int

func (s SignalExit) Error() string { return "signal" }

// Code is the exit code where no signal can end this process.
func (s SignalExit) Code() int { return 128 + int(s) }

// An Error is an error in the form that people read, with its exit code.
type Error struct {
	Code int
	End  sallyport.End // how the run is reported to have ended
	Text string
	Fix  string // what to do about it, a clause; may be empty
}

func (e *Error) Error() string { return e.String() }

// ExitCode returns Code.
func (e *Error) ExitCode() int { return e.Code }

func (e *Error) String() string {
	if e.Fix == "" {
		return e.Text
	}
	return e.Text + "; " + e.Fix
}

// NewError returns an error of our own, such as a command line that is invalid.
func NewError(format string, args ...any) error {
	return &Error{Code: CodeFailed, End: sallyport.EndFailed, Text: fmt.Sprintf(format, args...)}
}

// ErrorWith returns an error with an exit code of its own. The fix may be empty.
func ErrorWith(code int, end sallyport.End, text, fix string) error {
	return &Error{code, end, text, fix}
}

// CannotWrite returns the error for standard output that cannot be written.
func CannotWrite(err error) error {
	switch {
	case errors.Is(err, syscall.EPIPE):
		return NewError("cannot write standard output: the reader has closed it")
	case errors.Is(err, syscall.EBADF):
		return NewError("cannot write standard output: it is closed")
	}
	return NewError("cannot write standard output: %v", SystemCause(err))
}

// Classify puts an error into the form that people read.
func Classify(err error) *Error {
	var (
		own         *Error
		words       *syntax.FlagError
		ceiling     *config.CeilingError
		start       *executor.StartError
		unsupported *sandbox.UnsupportedError
		hidden      *sandbox.HiddenError
		interrupted *sallyport.InterruptedError
		apart       *executor.ApartError
		writer      *approval.WriterError
		unkept      *sallyport.AuditError
		lost        *sallyport.LostError
	)
	switch {
	case errors.As(err, &interrupted):
		return &Error{128 + interrupted.Signal, sallyport.EndCanceled, OneLine(err), ""}
	case errors.As(err, &unkept):
		return unwritten(unkept)
	case errors.As(err, &own):
		return own
	case errors.As(err, &lost):
		return &Error{CodeFailed, sallyport.EndLost, OneLine(err), ""}
	case errors.As(err, &words):
		return &Error{Code: CodeFailed, End: sallyport.EndFailed, Text: words.Error()}
	case errors.As(err, &ceiling):
		return &Error{CodeForbidden, sallyport.EndForbidden, OneLine(err), ""}
	case errors.As(err, &apart):
		return &Error{CodeForbidden, sallyport.EndForbidden, OneLine(err), ""}
	case errors.As(err, &unsupported):
		return &Error{CodeUnavailable, sallyport.EndUnavailable, "sandbox not available: needs " +
			unsupported.Need + ", but " + unsupported.Have, unsupportedFix(unsupported)}
	case errors.Is(err, sallyport.ErrNoSandbox):
		return &Error{CodeUnavailable, sallyport.EndUnavailable, OneLine(err),
			"run sallyport doctor to see what is missing"}
	case errors.Is(err, sallyport.ErrForbidden):
		var by *sallyport.Rule
		if e := new(sallyport.RuleError); errors.As(err, &e) {
			by = &e.Rule
		}
		text, fix := Unasked(OneLine(err), by)
		return &Error{CodeForbidden, sallyport.EndForbidden, text, fix}
	case errors.As(err, &writer):
		return &Error{CodeRefused, sallyport.EndRefused, OneLine(err), writerFix(writer)}
	case errors.Is(err, sallyport.ErrRefused):
		return &Error{CodeRefused, sallyport.EndRefused, OneLine(err), ""}
	case errors.As(err, &start) && start.NotFound:
		return notFound(start)
	case errors.As(err, &start):
		s, fix := cannotRun(start.Err)
		return &Error{CodeCannotRun, sallyport.EndFailed, text.Word(start.Program) + ": " + s, fix}
	case errors.As(err, &hidden):
		text, fix := cannotRun(err)
		return &Error{CodeFailed, sallyport.EndFailed, text, fix}
	}
	return &Error{CodeFailed, sallyport.EndFailed, OneLine(err), ""}
}

// unwritten is Classify for an audit log.
func unwritten(err *sallyport.AuditError) *Error {
	text, fix := OneLine(err), "set audit.required = false to run without"
	if w := new(audit.WriteError); errors.As(err, &w) {
		text = OneLine(&sallyport.AuditError{Err: fmt.Errorf("%s: %w", w.Path, SystemCause(w.Err))})
		fix = "make room or fix its permissions, set audit.path to another directory, or " + fix
	}
	return &Error{CodeFailed, sallyport.EndFailed, text, fix}
}

// unsupportedFix ends with the flag that accepts what the machine has.
func unsupportedFix(err *sandbox.UnsupportedError) string {
	if err.Level == "" {
		return err.Hint
	}
	weaker := "add --level " + err.Level
	if err.Hint == "" {
		return weaker
	}
	return err.Hint + "; or, with fewer walls (sallyport doctor lists them), " + weaker
}

// writerFix says how to end the command that could change a file, or to start it without that.
func writerFix(err *approval.WriterError) string {
	return "sallyport ps lists sessions and sallyport kill ID ends one; --ro " + ShellWord(err.Path) +
		" starts it with the file read-only"
}

// notFound is Classify for programs that were not found.
func notFound(start *executor.StartError) *Error {
	e := &Error{Code: CodeNotFound, End: sallyport.EndNotFound, Text: OneLine(start.Err)}
	var looked *fs.PathError
	switch {
	case errors.Is(start.Err, executor.ErrPrivateTmp):
		e.Fix = "use --tmp host"
	case isScript(start.Program):
		e.Fix = "a script needs -c: sallyport run -c " + ShellWord(start.Program)
	case isSetting(start.Program):
		e.Fix = "a variable is set with -e " + ShellWord(start.Program)
	case !strings.Contains(start.Program, "/") && programs.Builtin(start.Program):
		e.Fix = "it is a command of shells, and a script needs -c: sallyport run -c SCRIPT"
	case !errors.Is(start.Err, fs.ErrNotExist):
	case errors.As(start.Err, &looked):
		e.Text = text.Word(start.Program) + ": no such file"
	default: // it exists outside, and then the kernel missed something
		e.Text = text.Word(start.Program) + ": not found inside the sandbox (the program or its interpreter)"
		e.Fix = "check its first line"
	}
	return e
}

// isScript reports whether the name of a program is text for a shell.
func isScript(name string) bool {
	return strings.ContainsAny(name, " |&;<>$`") && !strings.Contains(name, "/") ||
		strings.ContainsAny(name, "|&;<>`")
}

// isSetting reports whether the name of a program is a variable with its value, as shells take it.
func isSetting(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	variable, _, ok := strings.Cut(name, "=")
	return ok && variable != "" && strings.Trim(strings.ToUpper(variable), letters+"0123456789") == ""
}

// ToRun is the command line that runs what is no command of ours.
func ToRun(words string) string {
	if isScript(words) {
		return "sallyport run -c " + ShellWord(words)
	}
	return "sallyport run -- " + ShellWord(words)
}

// cannotRun explains why a program that exists cannot be executed.
func cannotRun(err error) (s, fix string) {
	var hidden *sandbox.HiddenError
	switch {
	case errors.As(err, &hidden):
		return hidden.What + " " + text.Word(hidden.Path) + " is hidden by the policy", "allow with --ro " +
			ShellWord(hidden.Path)
	case errors.Is(err, syscall.E2BIG):
		return "arguments and environment are too long for this system",
			"pass large data in a file or on standard input"
	case errors.Is(err, syscall.EISDIR):
		return "is a directory", ""
	case errors.Is(err, fs.ErrPermission):
		return "permission denied",
			"check that it is executable (chmod +x) and that the policy lets it be read"
	case errors.Is(err, syscall.ENOEXEC):
		return "not a program for this system", "a script needs a first line such as #!/bin/sh"
	}
	return "cannot be executed: " + SystemCause(err).Error(), ""
}

// OneLine returns the text of an error as one line without the name of the
// product, which is printed in front of it.
func OneLine(err error) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "sallyport: ")), " ")
}

// SystemCause returns the system's error without operation and path, which our
// message names itself.
func SystemCause(err error) error {
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
