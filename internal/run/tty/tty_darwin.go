// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// The requests for modes, see termios(4).
const (
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETA
)

func continueOutput(fd int) error { return unix.IoctlSetInt(fd, unix.TIOCSTART, 0) }

func discardInput(fd int) error {
	const read = 1 // FREAD of fcntl.h
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, read)
}

// reopen returns nil: opening /dev/fd gives the same description again, and the name of
// the terminal can lead elsewhere. The given description is read, after select(2).
func reopen(int) *os.File { return nil }

// await blocks until there is something to read from the terminal or from wake. Without
// keys, only wake counts. It uses select(2), because poll(2) does not support terminals.
func await(fd, wake int, keys bool) (ready, woken, gone bool, err error) {
	for {
		var set unix.FdSet
		set.Set(wake)
		if keys {
			set.Set(fd)
		}
		if _, err = unix.Select(max(fd, wake)+1, &set, nil, nil, nil); !errors.Is(err, unix.EINTR) {
			return keys && set.IsSet(fd), set.IsSet(wake), false, err
		}
	}
}

// awaitNext does nothing: here a process in the background is stopped if it reads keys of
// another job, as every program is.
func awaitNext(int, int) error { return nil }
