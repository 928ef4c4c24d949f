// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tty

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const named = "descriptor "

// Inherited returns descriptor n if this process was started with it, else nil. Whatever this
// process opens itself is closed on exec, and what it was started with was not.
func Inherited(n int) *os.File {
	flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil
	}
	return os.NewFile(uintptr(n), named+strconv.Itoa(n))
}

// IsPipe reports whether f is a pipe without a name: what it opens is what the process at its
// other end writes or reads, and nothing on any disk.
func IsPipe(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return false
	}
	name, err := os.Readlink("/proc/self/fd/" + strings.TrimPrefix(f.Name(), named))
	return err == nil && strings.HasPrefix(name, "pipe:")
}
