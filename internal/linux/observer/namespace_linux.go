// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"io"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
)

// sees reports whether the task has the mount of an open file in its own namespace. This
// process may follow links of /proc that are closed to the task, such as those of process 1,
// and they can lead out. What cannot be asked about is not seen.
func (r *request) sees(fd int) bool { return r.mountOf(fd) != nil }

// mountOf returns the mount of an open file in the task's list of mounts; nil where it is not
// there, or cannot be asked about.
func (r *request) mountOf(fd int) *hostfacts.Mount {
	var st unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st) != nil ||
		st.Mask&unix.STATX_MNT_ID == 0 {
		return nil
	}
	mounts := r.mounts()
	i := slices.IndexFunc(mounts, func(m hostfacts.Mount) bool { return uint64(m.ID) == st.Mnt_id })
	if i < 0 {
		return nil
	}
	return &mounts[i]
}

// mounts returns the task's list of mounts; nil where it cannot be read.
func (r *request) mounts() []hostfacts.Mount {
	list, err := unix.Openat(r.proc, strconv.Itoa(int(r.n.PID))+"/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(list), "mountinfo")
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil
	}
	return hostfacts.ParseMounts(string(text))
}
