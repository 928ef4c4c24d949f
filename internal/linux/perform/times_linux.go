// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package perform

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// utimensat sets the times of what a descriptor is of, which may be a symbolic link. Package unix takes no
// missing times, which need fewer rights.
func utimensat(fd int, times []unix.Timespec) syscall.Errno {
	var at unsafe.Pointer
	if len(times) == 2 {
		at = unsafe.Pointer(&times[0])
	}
	empty := [1]byte{}
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])),
		uintptr(at), unix.AT_EMPTY_PATH, 0, 0)
	return errno
}
