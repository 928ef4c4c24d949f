// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package safefile

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// NoWait is a flag for opening a regular file or a directory, which nothing has to wait for: package os
// then makes one call to find that out, and not five.
const NoWait = syscall.O_NONBLOCK

// IsForeign reports whether a file belongs to another user than that of this process. Where files have no
// owners, none does.
func IsForeign(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) != euid()
}

// closed reports whether only the owner can enter a directory.
func closed(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

// keepOwner gives a file the owner and the group of another.
func keepOwner(f *os.File, of fs.FileInfo) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	a, ok := of.Sys().(*syscall.Stat_t)
	b, is := mine.Sys().(*syscall.Stat_t)
	if !ok || !is || a.Uid == b.Uid && a.Gid == b.Gid {
		return nil
	}
	return f.Chown(int(a.Uid), int(a.Gid))
}

// mark is an extended attribute of what a program of ours has created among files of others. It shows
// in no listing.
const mark = "user.sallyport.created"

// Mark notes on a file or directory that it was created by us. Where the file system keeps no notes the
// error says so.
func Mark(f *os.File) error { return unix.Fsetxattr(int(f.Fd()), mark, []byte{'1'}, 0) }

// Marked reports whether [Mark] was called for a file or directory, also by an earlier process.
func Marked(f *os.File) bool {
	n, err := unix.Fgetxattr(int(f.Fd()), mark, nil)
	return err == nil && n > 0
}

// holds says that it is known which files processes hold.
const holds = true

// hold has this process hold an open file until release, also when the file is closed before, and reports
// whether no other one does.
func hold(f *os.File) (release func(), ok bool) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return func() {}, false
	}
	release = func() { _ = unix.Close(fd) }
	return release, Lock(f, unix.LOCK_EX|unix.LOCK_NB) == nil
}
