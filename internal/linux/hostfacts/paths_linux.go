// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import "golang.org/x/sys/unix"

// Direct reports in one call whether an absolute path has no symbolic link in it, as far as it
// exists, and whether all of it does. Where it does not find out it says false.
func Direct(name string) (exists, direct bool) {
	fd, err := unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return false, err == unix.ENOENT
	}
	unix.Close(fd)
	return true, true
}
