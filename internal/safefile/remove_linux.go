// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Chmod sets the permissions of what has the name in the directory dir. A link is ELOOP. The
// way by a descriptor follows none; fchmodat(2) does on kernels before 6.6.
func Chmod(dir int, name string, mode uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode)
}
