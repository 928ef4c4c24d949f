// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"os"

	"golang.org/x/sys/unix"
)

// searchOnly opens a directory to look for names in it.
const searchOnly = unix.O_PATH

// identify returns the identity of an open directory.
func identify(dir *os.File) (identity, error) {
	var st unix.Statx_t
	if err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME,
		&st); err != nil {
		return identity{}, err
	}
	id := identity{device: unix.Mkdev(st.Dev_major, st.Dev_minor), inode: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id, nil
}
