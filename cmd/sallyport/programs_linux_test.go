// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// programs are what this test binary can be, by name.
func programs() map[string]func() {
	return map[string]func(){"sallyport": managed, "act": act, "chaos": chaosMain, "unlocked": unlocked, "eavesdrop": eavesdrop}
}

// unlocked waits until no process has a lock on any of the files.
func unlocked() {
	for _, name := range os.Args[1:] {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		check(err)
		for err = unix.EINTR; err == unix.EINTR; {
			err = unix.Flock(fd, unix.LOCK_EX)
		}
		check(err)
		unix.Close(fd)
	}
}
