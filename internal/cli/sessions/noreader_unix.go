// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sessions

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// userSignals are passed on, and ask for no end.
var userSignals = map[os.Signal]string{syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2"}

// awaitNoReader blocks until nothing reads the pipe or socket f any more, and returns true then;
// false when the other end of the pipe over was closed, and where it cannot be known.
func awaitNoReader(f, over *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	other, err := over.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	_ = raw.Control(func(fd uintptr) {
		_ = other.Control(func(end uintptr) {
			fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(end)}} // errors and hang-ups are always told
			for {
				_, err := unix.Poll(fds, -1)
				if errors.Is(err, unix.EINTR) {
					continue
				}
				gone = err == nil && fds[0].Revents != 0 && fds[1].Revents == 0
				return
			}
		})
	})
	return gone
}
