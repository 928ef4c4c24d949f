// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// Role is what a command does with a file.
type Role string

// The roles. RoleProgram is executed, RoleInterpreter by the first line of one that is,
// RoleScript is run by an interpreter that the command names, RoleArgument is another one.
const (
	RoleProgram     Role = "program"
	RoleInterpreter Role = "interpreter"
	RoleScript      Role = "script"
	RoleArgument    Role = "argument"
)

// A File is one that a command runs or reads and that commands in the sandbox can change.
type File struct {
	Path   string `json:"path"` // without links
	Role   Role   `json:"role"`
	Digest string `json:"sha256"` // of the contents, in hexadecimal digits
}

// An UnreadableError says that what a command runs cannot be read: it cannot be approved then.
type UnreadableError struct {
	Path string
	Role Role
	Err  error // never nil
}

// Error returns one sentence with the path, the reason and the fix.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the %s %s cannot be read: %s; what cannot be read cannot be approved, so make it readable and ask again",
		e.Role, text.Word(e.Path), text.Line(e.Err.Error()))
}

// Unwrap returns Err.
func (e *UnreadableError) Unwrap() error { return e.Err }

// A WriterError says that another command, which runs in a sandbox, could change a file that an
// approval rests on, so that something else would run than what was approved.
type WriterError struct {
	Path    string
	Role    Role
	Run     string // of the other command; empty if it is not known
	PID     int    // of the process that started it; 0 if it is not known
	Program string // what it runs
}

// Error returns one sentence with the path, the run and the fix.
func (e *WriterError) Error() string {
	return fmt.Sprintf("the %s %s could be changed by another command that still runs (%s, run %s, process %d); "+
		"wait until that has ended or end it, or start it with the file read-only",
		e.Role, text.Word(e.Path), text.Line(e.Program), text.Line(e.Run), e.PID)
}
