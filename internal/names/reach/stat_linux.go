// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// unchanged reports whether two looks at a file saw the same one, and no change between them. A change
// of what is mapped into memory need not be seen.
func unchanged(a, b os.FileInfo) bool {
	one, ok := a.Sys().(*syscall.Stat_t)
	two, also := b.Sys().(*syscall.Stat_t)
	return ok && also && one.Dev == two.Dev && one.Ino == two.Ino && one.Mode == two.Mode &&
		one.Size == two.Size &&
		one.Mtim == two.Mtim && one.Ctim == two.Ctim
}

// mayAccess asks the kernel, with the rights that count for files.
func mayAccess(op sandbox.Op, name string) bool {
	mode := uint32(unix.R_OK)
	if op == sandbox.Write {
		mode = unix.W_OK
	}
	return unix.Faccessat(unix.AT_FDCWD, name, mode, unix.AT_EACCESS) == nil
}
