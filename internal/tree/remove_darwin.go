// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import "golang.org/x/sys/unix"

// openUp gives the owner of a directory that cannot be opened all rights to it.
func openUp(dir int, name string) error {
	return unix.Fchmodat(dir, name, 0o700, unix.AT_SYMLINK_NOFOLLOW)
}
