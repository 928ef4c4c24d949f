// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package safefile

import (
	"io/fs"
	"os"
	"syscall"
)

func foreign(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) != os.Geteuid()
}

// closed reports whether only the owner can enter a directory.
func closed(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }
