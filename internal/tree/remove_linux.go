// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// openUp gives the owner of a directory that cannot be opened all rights to it. The way by a
// descriptor follows no link; fchmodat(2) does on kernels before 6.6.
func openUp(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o700)
}
