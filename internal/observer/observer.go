// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observer watches the system calls of one command and everything that it
// starts, and says exactly what the sandbox kept it from.
//
// A seccomp filter hands the calls that change files or name addresses to a
// [Supervisor] and suspends the caller until there is an answer. The supervisor
// reads the arguments, finds what a name leads to as the kernel would for that
// task, and compares it with the walls that stand there: mounts, and the rules of
// a [Judge]. What a wall refuses is answered with the error that the wall gives,
// and noted; everything else is answered "continue", and the kernel and its walls
// decide. So a program that changes a name between our look and the kernel's gains
// nothing: the walls do not ask us. Connecting a socket is the exception, since no
// mount keeps a command from a unix socket: there the supervisor connects a
// duplicate of the socket to the address that it has read, and never continues.
//
// The flow: [Listen] before the launch, the end that it returns goes into the
// launch script, [Inbox.Serve] takes the listener and answers from then on,
// [Supervisor.Close] when the tree is dead gives the [Report]. A supervisor that is
// gone leaves no way on: the kernel then fails every call that it would ask about,
// and the launcher ends a tree whose front end has died.
//
// The package refuses to widen anything: it never opens a file for a command and
// never answers "continue" for what it was told to refuse. It cannot see calls by
// io_uring, writes through descriptors that are open already, and calls of
// programs that put a filter of their own around them which fails them first.
package observer

import (
	"syscall"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// MaxDenials is how many different denials a [Report] keeps. Further ones are
// counted.
const MaxDenials = 200

// A Judge rules on what walls in the kernel cannot. Its methods are called from
// one goroutine at a time and must not block.
type Judge interface {
	// File rules on an operation that the mounts let through. Path is absolute,
	// clean and free of symbolic links; made says that the operation would bring
	// the name into being. Zero lets it pass.
	File(op sandbox.Op, path string, made bool) syscall.Errno
	// Folder reports whether names that are written to in a folder, given like a path,
	// have to be brought before File. Special reports whether a name has to be in
	// every folder.
	Folder(dir string) bool
	Special(name string) bool
	// Hidden reports whether a path is one that the policy denies, so that an
	// error on the way to it is the sandbox's doing, and whether the operation
	// would have had something to work on outside.
	Hidden(op sandbox.Op, path string) bool
}

// A Config says what a [Supervisor] has to know. The zero Config is of a command
// on the host's network at a level with mounts, without any rule beyond them.
type Config struct {
	// Judge may be nil: then only the mounts rule.
	Judge Judge
	// PrivateNetwork says that the command has a network of its own in which only
	// loopback exists.
	PrivateNetwork bool
	// NoSockets says that the command gets no internet sockets at all, for want of a
	// network of its own.
	NoSockets bool
	// UnixOpen says that unix sockets were opened to the command: where they connect
	// to is not judged.
	UnixOpen bool
	// OwnRoots says that tasks may change their root folder.
	OwnRoots bool
	// Reads says that calls which only read are handed over, too.
	Reads bool
	// Flat, when it is not nil, are the only places that can be written to, at a level
	// without mounts of its own: absolute, clean and free of symbolic links. Nil means
	// that the mounts tell.
	Flat []string
}

// A Report is what a supervisor has seen.
type Report struct {
	// Denials are what was refused, each operation and target once, in the order in
	// which they came first; at most MaxDenials of them.
	Denials []sandbox.Denial
	// Omitted counts refused accesses that found no room among the Denials.
	Omitted int
	// Calls is how many calls were judged.
	Calls uint64
	// Err says why the watch ended early, after which every call of the command that
	// is judged failed; nil when it did not.
	Err error
}
