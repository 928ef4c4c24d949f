// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import "github.com/sallyport-dev/sallyport/sandbox"

// An AccessQuestion is an access that the sandbox of a process denies and that an answer opens. The call
// waits meanwhile and has not been made.
type AccessQuestion struct {
	// Access is the operation, sandbox.Write or that of a connection to a unix socket, with the path by which
	// it is asked for.
	Access sandbox.Access
	// Call is the name of the system call, such as "mkdir".
	Call string
	// Paths are all that have to be opened for it: one, or two for a rename or a link. They are absolute, as
	// the host sees them, without symbolic links.
	Paths []string
	// PID is the process that waits, as the executor's machine sees it, and Program its name, which it
	// chooses.
	PID     int
	Program string
}
