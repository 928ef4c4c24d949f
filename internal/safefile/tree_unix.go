// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package safefile

import (
	"io/fs"
	"syscall"
)

// NoWait is a flag for opening a regular file or a directory, which nothing has to wait for: package os
// then makes one call to find that out, and not five.
const NoWait = syscall.O_NONBLOCK

func foreign(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) != euid()
}

// closed reports whether only the owner can enter a directory.
func closed(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }
