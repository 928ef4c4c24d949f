// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raw makes a call on one path, with two more arguments.
func raw(nr uintptr, a, b uintptr) func(string) error {
	return func(name string) error {
		n, _, errno := unix.Syscall(nr, uintptr(unsafe.Pointer(relative(name))), a, b)
		switch {
		case errno != 0:
			return errno
		case nr == unix.SYS_OPEN || nr == unix.SYS_CREAT:
			return errors.Join(writes("x")(int(n)), unix.Close(int(n)))
		}
		return nil
	}
}

// addLegacy adds the calls that only this machine has.
func addLegacy(ops map[string]askedOp) {
	two := func(nr uintptr) func(from, to string) error {
		return func(from, to string) error {
			_, _, errno := unix.Syscall(nr, uintptr(unsafe.Pointer(relative(from))),
				uintptr(unsafe.Pointer(relative(to))), 0)
			if errno != 0 {
				return errno
			}
			return nil
		}
	}
	seconds := &syscall.Utimbuf{Actime: 1000, Modtime: 2000}
	precise := &[2]unix.Timeval{{Sec: 1000, Usec: 1}, {Sec: 2000, Usec: 2}}
	for call, nr := range map[string]uintptr{"open": unix.SYS_OPEN, "creat": unix.SYS_CREAT} {
		a, b := uintptr(0o666), uintptr(0)
		if call == "open" {
			a, b = unix.O_CREAT|unix.O_WRONLY, 0o666
		}
		ops["legacy "+call] = row(call, "new", on("new", raw(nr, a, b)))
	}
	ops["legacy mkdir"] = row("mkdir", "new", on("new", raw(unix.SYS_MKDIR, 0o777, 0)))
	ops["legacy mknod"] = row("mknod", "new", on("new", raw(unix.SYS_MKNOD, unix.S_IFIFO|0o666, 0)))
	ops["legacy unlink"] = row("unlink", "old", on("old", raw(unix.SYS_UNLINK, 0, 0)))
	ops["legacy rmdir"] = row("rmdir", "dir", on("dir", raw(unix.SYS_RMDIR, 0, 0)))
	ops["legacy chmod"] = row("chmod", "old", on("old", raw(unix.SYS_CHMOD, 0o604, 0)))
	ops["legacy utime"] = row("utime", "old",
		on("old", raw(unix.SYS_UTIME, uintptr(unsafe.Pointer(seconds)), 0)))
	ops["legacy utimes"] = row("utimes", "old", on("old",
		raw(unix.SYS_UTIMES, uintptr(unsafe.Pointer(precise)), 0)))
	ops["legacy utimes now"] = row("utimes", "old", on("old", raw(unix.SYS_UTIMES, 0, 0)))
	ops["legacy futimesat"] = row("futimesat", "old", on("old", func(name string) error {
		at := unix.AT_FDCWD
		_, _, errno := unix.Syscall(unix.SYS_FUTIMESAT, uintptr(at), uintptr(unsafe.Pointer(relative(name))),
			uintptr(unsafe.Pointer(precise)))
		if errno != 0 {
			return errno
		}
		return nil
	}))
	ops["legacy rename"] = row("rename", "old new", onTwo("old", "new", two(unix.SYS_RENAME)))
	ops["legacy link"] = row("link", "old new", onTwo("old", "new", two(unix.SYS_LINK)))
	ops["legacy symlink"] = row("symlink", "new", onTwo("old", "new", func(_, to string) error {
		return two(unix.SYS_SYMLINK)("no where", to)
	}))
}
