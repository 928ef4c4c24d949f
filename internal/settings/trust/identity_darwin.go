// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"os"

	"golang.org/x/sys/unix"
)

// searchOnly opens a directory to look for names in it.
const searchOnly = unix.O_RDONLY

// identify returns the identity of an open directory.
func identify(dir *os.File) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return identity{}, err
	}
	return identity{device: uint64(st.Dev), inode: st.Ino, born: st.Btim.Nano()}, nil
}
