// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import "golang.org/x/sys/unix"

// Chmod sets the permissions of what has the name in the directory dir. No link is followed.
func Chmod(dir int, name string, mode uint32) error {
	return unix.Fchmodat(dir, name, mode, unix.AT_SYMLINK_NOFOLLOW)
}
