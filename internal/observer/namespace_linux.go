// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"bytes"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// sees reports whether the task has the mount of an open file in its own namespace. This
// process may follow links of /proc that are closed to the task, such as those of process 1,
// and they can lead out. What cannot be asked about is not seen.
func (r *request) sees(fd int) bool { return r.mountOf(fd) != nil }

// mountOf returns the words about the mount of an open file in the task's list of mounts; nil
// where it is not there, or cannot be asked about.
func (r *request) mountOf(fd int) [][]byte {
	var st unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st) != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return nil
	}
	list, err := unix.Openat(r.proc, strconv.Itoa(int(r.n.pid))+"/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(list), "mountinfo")
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil
	}
	id := strconv.AppendUint(nil, st.Mnt_id, 10)
	for line := range bytes.Lines(text) {
		if first, _, _ := bytes.Cut(line, []byte(" ")); bytes.Equal(first, id) {
			return bytes.Fields(line)
		}
	}
	return nil
}
