// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
)

// DescribeStdio looks at standard descriptor i and, with reopen, at how it is opened
// anew.
//
// A descriptor keeps the mount that it was opened through. The command could
// use one of the caller's to change mode, times and attributes of a file outside
// although every path to it is read-only: the mode of the host's /dev/null, for
// one, when real root runs the command. So what can be opened by name is opened
// anew inside. A regular file that is open for writing was passed for that,
// and stays as it is; so does what the command has no right to change anyway,
// and a file without a name.
func DescribeStdio(i int, f *os.File, reopen bool) (plan.Stdio, error) {
	var s plan.Stdio
	raw, err := f.SyscallConn()
	if err != nil {
		return s, fmt.Errorf("standard descriptor %d cannot be used: %w", i, err)
	}
	var st unix.Stat_t
	var flags, offset int64
	var name string
	err = raw.Control(func(fd uintptr) {
		if err = unix.Fstat(int(fd), &st); err != nil {
			return
		}
		kind := st.Mode & unix.S_IFMT
		s.File, s.Device, s.Directory = kind == unix.S_IFREG, kind == unix.S_IFCHR, kind == unix.S_IFDIR
		var fl int
		if fl, err = unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil {
			return
		}
		flags = int64(fl)
		s.Writable = flags&unix.O_ACCMODE != unix.O_RDONLY && flags&unix.O_PATH == 0
		if reopen = reopen && (s.Directory || s.Device || s.File && !s.Writable); !reopen {
			return
		}
		name, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd)))
		offset, _ = unix.Seek(int(fd), 0, unix.SEEK_CUR) // pipes and terminals have none
	})
	if err != nil {
		return s, fmt.Errorf("standard descriptor %d cannot be used: %w", i, err)
	}
	if !reopen {
		return s, nil
	}
	return reopenable(i, s, &st, name, uint64(flags), offset)
}

// reopenable adds how a descriptor is opened anew, where that is needed.
func reopenable(i int, s plan.Stdio, st *unix.Stat_t, name string, flags uint64,
	offset int64) (plan.Stdio, error) {
	var at unix.Stat_t
	if err := unix.Lstat(name, &at); err != nil || at.Dev != st.Dev || at.Ino != st.Ino {
		if s.Directory {
			return s, &executor.RootError{
				Path: name, Why: fmt.Sprintf("is standard descriptor %d, a directory that no longer has a path, and through it the command could reach every other directory", i),
				Fix: "pass another one, or a file",
			}
		}
		return s, nil // no name: no other process can open it
	}
	// Modes are the owner's to change; times and attributes of a file also those
	// of users who may write to it. From a directory all others can be reached, past
	// every mask and cover, so it never stays as it is.
	if !s.Directory && int(st.Uid) != os.Geteuid() && (s.Device || unix.Access(name, unix.W_OK) != nil) {
		return s, nil //nolint:nilerr // not ours to change
	}
	if s.Device && st.Rdev == unix.Mkdev(5, 0) { // linux/major.h: TTYAUX_MAJOR
		// /dev/tty is another terminal, or none, for each process that opens it.
		if name = ControllingTerminal(); name == "" || unix.Lstat(name, &at) != nil {
			return s, &executor.RootError{
				Path: "/dev/tty", Why: fmt.Sprintf("is standard descriptor %d, but its terminal cannot be determined", i),
				Fix: "pass the terminal itself",
			}
		}
	}
	need := uint32(unix.R_OK)
	switch flags & unix.O_ACCMODE {
	case unix.O_WRONLY:
		need = unix.W_OK
	case unix.O_RDWR:
		need |= unix.W_OK
	}
	if err := unix.Access(name, need); err != nil {
		return s, &executor.RootError{
			Path: name, Why: fmt.Sprintf("is standard descriptor %d and cannot be opened anew for the command: %v", i, err),
			Fix: "pass it through a pipe",
		}
	}
	s.Reopen = &plan.Reopen{
		Spot:   plan.Spot{Path: name, ID: launch.ID{Dev: at.Dev, Ino: at.Ino}},
		Flags:  flags & (unix.O_ACCMODE | unix.O_APPEND | unix.O_NONBLOCK | unix.O_DIRECTORY),
		Offset: max(offset, 0),
	}
	return s, nil
}

// ControllingTerminal is the name of this process's controlling terminal, empty when it
// has none or it has no name here. The kernel gives its device number
// (proc_pid_stat(5)): pseudo-terminals have the majors 136 to 143, virtual
// consoles 4.
func ControllingTerminal() string {
	stat := OneLine("/proc/self/stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const ttyField = 4 // counted from the state, which follows the name
	if len(fields) <= ttyField {
		return ""
	}
	n, err := strconv.ParseInt(fields[ttyField], 10, 32)
	if err != nil {
		return ""
	}
	dev := uint64(uint32(n))
	major, minor := unix.Major(dev), unix.Minor(dev)
	name := ""
	switch {
	case major >= 136 && major <= 143:
		name = fmt.Sprintf("/dev/pts/%d", (major-136)*256+minor)
	case major == 4 && minor < 64:
		name = fmt.Sprintf("/dev/tty%d", minor)
	case major == 4:
		name = fmt.Sprintf("/dev/ttyS%d", minor-64)
	}
	var at unix.Stat_t
	if name == "" || unix.Lstat(name, &at) != nil || at.Rdev != dev {
		return ""
	}
	return name
}
