// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// EvalSymlinks is [filepath.EvalSymlinks]. Most paths have no symbolic link in them,
// and the kernel says so faster than a look at every directory on the way.
func EvalSymlinks(name string) (string, error) {
	if filepath.IsAbs(name) {
		fd, err := unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err == nil {
			unix.Close(fd)
			return filepath.Clean(name), nil
		}
	}
	return filepath.EvalSymlinks(name)
}
