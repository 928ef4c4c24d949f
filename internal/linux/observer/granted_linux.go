// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// granted opens the socket that a connect to a file leads to where that very file was granted,
// whatever its name is now; -1 where it was not. Its mount may be read-only: a socket is not
// written to.
func (c *connecting) granted(f *facts) int {
	for _, s := range c.cfg.Sockets {
		var own facts
		if c.stat(int(s.File.Fd()), "", &own) != 0 || own.dev != f.dev || own.ino != f.ino {
			continue
		}
		if fd, err := unix.FcntlInt(s.To.Fd(), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			return fd
		}
	}
	return -1
}

// absent notes a connect to a service that was not granted and so is not there.
func (c *connecting) absent(name string, errno syscall.Errno) syscall.Errno {
	if slices.Contains(c.cfg.Places, name) {
		return c.refuse(name, errno)
	}
	return errno
}
