// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"context"
	"syscall"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// An Access is what a call would do to a file.
type Access struct {
	// Op is Read, Write or Exec.
	Op sandbox.Op
	// Path is absolute, clean and free of symbolic links.
	Path string
	// Creates says that the path does not exist and that the call would create it.
	Creates bool
	// Removes says that the call takes the name away, and what it names with its last one.
	Removes bool
	// Moves says that the call gives what has the name another one in its place.
	Moves bool
	// Special says that the call puts something there that is neither a file nor a
	// directory, such as a symbolic link.
	Special bool
	// Thread is the id of the calling thread, as seen from outside of the sandbox.
	Thread int
}

// A Caller is the process whose call waits for a ruling. Zero fields are unknown.
type Caller struct {
	PID     int
	Program string
	Name    string // what it calls itself
}

// A Ruling answers an [Access]. The zero Ruling denies it with EACCES.
type Ruling struct {
	// Allow lets the call pass.
	Allow bool
	// Errno is the error of a denial. Zero means EACCES.
	Errno syscall.Errno
	// Ask, when it is not nil, gives the ruling later; the other fields mean nothing
	// then. It is called in a goroutine of its own and may block until ctx ends, which
	// it does with the call or the supervisor. The call is denied then. The Ask of the
	// ruling that it returns is ignored. After the answer the call is judged again,
	// because the task may have changed its arguments.
	Ask func(ctx context.Context, by Caller) Ruling
}

// A Judge rules on accesses that the mounts allow. Its methods are called by one
// goroutine at a time and must not block.
type Judge interface {
	// Rule rules on an access.
	Rule(a Access) Ruling
	// EveryName reports whether Rule needs to be called for writes to all names in a
	// directory, given like a path.
	EveryName(dir string) bool
	// EveryDirectory reports whether Rule needs to be called for writes to a name in
	// all directories.
	EveryDirectory(name string) bool
	// Hidden reports whether the policy denies a path that cannot be found, and the
	// operation would have found a file there without the sandbox.
	Hidden(op sandbox.Op, path string) bool
}

// Answer returns the errno of a denial, and zero for a ruling that allows.
func (ruling *Ruling) Answer() syscall.Errno {
	switch {
	case ruling.Allow:
		return 0
	case ruling.Errno != 0:
		return ruling.Errno
	}
	return syscall.EACCES
}
