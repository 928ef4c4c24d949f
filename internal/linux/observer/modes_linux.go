// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// The set-gid bit of a directory gives no rights away: what is made in it gets its group. That of a
// file does, and a filter cannot tell the two apart. So the supervisor changes the mode of what it
// has opened itself and seen to be a directory; no such call is continued.

const setIDs = unix.S_ISUID | unix.S_ISGID

// judgeDirectoryMode makes a call that gives a directory the set-gid bit, and reports whether
// it is one. The error is never zero unless the call is made.
func (r *request) judgeDirectoryMode() (errno syscall.Errno, is bool) {
	fd, errno := r.openDirectory()
	if errno != 0 {
		return errno, errno != unix.EPERM
	}
	defer unix.Close(fd)
	opened := place{dir: -1, object: fd, exists: true}
	if r.stat(fd, "", &opened.facts) != 0 || !opened.is(unix.S_IFDIR) {
		return 0, false
	}
	wall := r.fileWall(&opened)
	if at := r.nameOf(fd); !r.hasMounts() && at == "" {
		wall = unix.EACCES // the root, or it has no name any more
	} else if !r.hasMounts() {
		wall = r.pathWall(at)
	}
	if errno = r.write(&opened, wall, false); errno != 0 {
		return errno, true
	}
	switch {
	case wall != 0:
		return wall, true // it has no name any more
	case !r.valid():
		return unix.EPERM, true
	}
	errno = asCommand(func() syscall.Errno {
		return asErrno(unix.Fchmodat(r.proc, "self/fd/"+strconv.Itoa(fd), uint32(r.mode)&0o7777, 0))
	})
	r.made = errno == 0
	return errno, true
}

// openDirectory opens what a call changes the mode of; EPERM is for what may be no directory.
func (r *request) openDirectory() (int, syscall.Errno) {
	if r.kind == kindTouch {
		if r.pathOnly(r.dir) {
			return -1, unix.EBADF
		}
		return r.openAt(r.dir)
	}
	name, errno := r.name(r.path, &r.first)
	switch {
	case errno != 0:
		return -1, errno
	case r.oddFlags:
		return -1, unix.EINVAL
	}
	p, lerr := r.find(r.dir, name, r.follow)
	if lerr != nil {
		if denied := r.notFound(sandbox.Write, lerr); denied != 0 {
			return -1, denied
		}
		return -1, lerr.errno
	}
	defer p.close()
	switch {
	case !p.exists:
		return -1, unix.ENOENT
	case !p.is(unix.S_IFDIR):
		return -1, unix.EPERM
	case p.named():
		return openat2(p.dir, p.name, pathFlags|unix.O_DIRECTORY, 0)
	}
	return dup(p.object)
}
