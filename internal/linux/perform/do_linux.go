// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package perform

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Do makes the call, with the rights of the calling thread, and returns a descriptor for Open, -1 for the
// others. ESTALE and ELOOP say that a place is another one than the one that was judged.
func (c *Call) Do() (int, syscall.Errno) {
	at, errno := c.At.open()
	if errno != 0 {
		return -1, errno
	}
	defer at.close()
	if c.Op == Open {
		return c.openFile(&at)
	}
	if c.two() {
		to, errno := c.To.open()
		if errno != 0 {
			return -1, errno
		}
		defer to.close()
		return -1, c.move(&at, &to)
	}
	if c.names() {
		return -1, c.name(&at)
	}
	return -1, c.change(at.file)
}

// name makes a call that changes names in a directory.
func (c *Call) name(at *spot) syscall.Errno {
	switch c.Op {
	case Mkdir:
		mode := c.mode(at.dir)
		return c.made(at, mode, number(unix.Mkdirat(at.dir, at.name, mode)))
	case Mknod:
		mode := c.mode(at.dir)
		return c.made(at, mode, number(unix.Mknodat(at.dir, at.name, c.Mode&unix.S_IFMT|mode, 0)))
	case Symlink:
		return number(unix.Symlinkat(c.Text, at.dir, at.name))
	case Unlink:
		return number(unix.Unlinkat(at.dir, at.name, 0))
	case Rmdir:
		return number(unix.Unlinkat(at.dir, at.name, unix.AT_REMOVEDIR))
	}
	return unix.EINVAL
}

// move makes a call with two places.
func (c *Call) move(at, to *spot) syscall.Errno {
	if c.Op == Rename {
		return number(unix.Renameat2(at.dir, at.name, to.dir, to.name, uint(c.Flags)))
	}
	if c.At.File.Type == unix.S_IFLNK {
		return number(unix.Linkat(at.dir, at.name, to.dir, to.name, 0))
	}
	return number(unix.Linkat(unix.AT_FDCWD, magic(at.file), to.dir, to.name, unix.AT_SYMLINK_FOLLOW))
}

// change makes a call that changes what was opened.
func (c *Call) change(fd int) syscall.Errno {
	switch c.Op {
	case Truncate:
		own, errno := reopen(fd, unix.O_WRONLY)
		if errno != 0 {
			return errno
		}
		defer unix.Close(own)
		return number(unix.Ftruncate(own, c.Size))
	case Chmod:
		return number(unix.Fchmodat(unix.AT_FDCWD, magic(fd), c.Mode, 0))
	case Chown:
		return number(unix.Fchownat(fd, "", c.Owner, c.Group, unix.AT_EMPTY_PATH))
	case SetTimes:
		return utimensat(fd, c.Times)
	case SetXattr:
		return number(unix.Setxattr(magic(fd), c.Text, c.Value, c.Flags))
	case RemoveXattr:
		return number(unix.Removexattr(magic(fd), c.Text))
	}
	return unix.EINVAL
}

// reopen opens what an O_PATH descriptor is of. Without O_NONBLOCK a lease would make it wait, without
// O_NOCTTY it could get a terminal.
func reopen(fd, flags int) (int, syscall.Errno) {
	for {
		own, err := unix.Open(magic(fd), flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if errno := number(err); errno != unix.EINTR {
			return own, errno
		}
	}
}

// openFile opens a regular file, or creates it.
func (c *Call) openFile(at *spot) (int, syscall.Errno) {
	const (
		forName = unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW
		status  = unix.O_APPEND | unix.O_DIRECT | unix.O_NOATIME | unix.O_NONBLOCK
	)
	if at.file < 0 {
		fd, errno := c.create(at)
		if errno != unix.EEXIST || c.Flags&unix.O_EXCL != 0 {
			return c.finish(fd, errno, status)
		}
		// Another call that waited for the same answer, or another program, was faster.
		at.file, errno = openat2(at.dir, at.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errno != 0 {
			return -1, errno
		}
	}
	switch id, _, errno := identify(at.file); {
	case errno != 0:
		return -1, errno
	case id.Type != unix.S_IFREG:
		return -1, unix.ELOOP
	}
	fd, errno := reopen(at.file, c.Flags&^forName)
	return c.finish(fd, errno, status)
}

// finish gives a descriptor the flags that the command has asked for.
func (c *Call) finish(fd int, errno syscall.Errno, status int) (int, syscall.Errno) {
	if errno != 0 {
		return -1, errno
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, c.Flags&status); err != nil {
		unix.Close(fd)
		return -1, number(err)
	}
	return fd, 0
}

// create creates a file that must not exist.
func (c *Call) create(at *spot) (int, syscall.Errno) {
	mode := c.mode(at.dir)
	flags := uint64(c.Flags | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_NOCTTY | unix.O_CLOEXEC)
	var fd int
	var err error
	for {
		fd, err = unix.Openat(at.dir, at.name, int(flags), mode)
		if number(err) != unix.EINTR {
			break
		}
	}
	if err != nil {
		return -1, number(err)
	}
	if errno := fix(fd, at.dir, mode); errno != 0 {
		unix.Close(fd)
		return -1, errno
	}
	return fd, 0
}

// permissions are those that a new file may get. The others give rights away.
const permissions = 0o1777

// mode returns the mode of what is created in a directory. With a default list of access rights the kernel
// ignores the umask.
func (c *Call) mode(dir int) uint32 {
	if hasDefaultACL(dir) {
		return c.Mode & permissions
	}
	return c.Mode & permissions &^ c.Umask
}

func hasDefaultACL(dir int) bool {
	n, err := unix.Getxattr(magic(dir), "system.posix_acl_default", nil)
	return err == nil && n > 0
}

// made gives what was created its mode: this process has a umask, too.
func (c *Call) made(at *spot, mode uint32, errno syscall.Errno) syscall.Errno {
	if errno != 0 {
		return errno
	}
	fd, errno := openat2(at.dir, at.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errno != 0 {
		return 0 // another program was faster
	}
	defer unix.Close(fd)
	return fix(fd, at.dir, mode)
}

// fix gives a new file the mode that its creator wants.
func fix(fd, dir int, mode uint32) syscall.Errno {
	id, got, errno := identify(fd)
	if errno != 0 || got&permissions == mode || hasDefaultACL(dir) || id.Type == unix.S_IFLNK {
		return errno
	}
	return number(unix.Fchmodat(unix.AT_FDCWD, magic(fd), got&unix.S_ISGID|mode, 0))
}
