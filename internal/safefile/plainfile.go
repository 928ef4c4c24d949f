// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package safefile opens files that commands may have replaced.
//
// [Open] looks at what a name leads to before it opens that. To open a device can start
// something, such as a watchdog or the rewinding of a tape, and to open a named pipe can wait
// or wake another program. The package refuses to open anything but regular files. [Replace]
// writes a file of our own so that no reader sees half of it, and [ReplaceIn] one among those of others, with
// what they changed meanwhile seen; [Mark] notes what we have created there. [Within] says by names what
// lies in a directory.
//
// [OpenTree] opens directories that are sallyport's own: real directories of this user's that are
// closed to others. [RemoveTree] removes what commands have put into them, through descriptors, so
// that a link that is put on the way meanwhile leads nowhere.
//
// [Lock] waits for a lock of a file (flock(2)) for a bounded time: a process that was stopped, or
// another program, may hold one for ever.
package safefile

import (
	"errors"
	"time"
)

// ErrNotPlain says that something is no regular file. It was not opened.
var ErrNotPlain = errors.New("it is not a regular file")

// ErrLeased says that another program holds a lease on a file (F_SETLEASE of fcntl(2)) and did
// not give it up within [Patience].
var ErrLeased = errors.New("another program, which lslocks names, holds a lease on it")

// Patience is how long Open waits for a program that holds a lease. The kernel tells that
// program, and takes the lease away after 45 seconds.
const Patience = 2 * time.Second
