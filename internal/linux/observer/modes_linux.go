// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"cmp"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/perform"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The set-gid bit of a directory gives no rights away: what is made in it gets its group. That of a
// file does, and a filter cannot tell the two apart. So the supervisor changes the mode of what it
// has opened itself and seen to be a directory; no such call is continued.

const setIDs = unix.S_ISUID | unix.S_ISGID

// What the kernel shows in /proc has one owner and one mode for the whole machine, and the root of this
// machine could change both: they are left alone. That holds also while another task exchanges the name
// of the call, because the supervisor changes all modes for root, as it does for directories.

// ruleKernel is the rule of those files. Its beginning is that of all denials which nothing opens.
const ruleKernel = "no grant opens it: entries of /proc and /sys are the same for the whole machine"

func isRoot() bool { return os.Geteuid() == 0 }

// kernels reports whether a place is one whose attributes root must not change.
func (r *request) kernels(p *place) bool { return isRoot() && r.mountAt(p).kernel }

func (r *request) denyKernel(p *place) syscall.Errno {
	errno := r.fileWall(p)
	if errno == 0 {
		errno = unix.EPERM
	}
	return r.deny(sandbox.Denial{
		Access: sandbox.Access{Op: sandbox.Write, Path: r.pathOf(p)}, Rule: ruleKernel, NoGrant: true,
	}, errno)
}

// changesModes reports whether the supervisor makes all calls that change modes. In namespaces that a
// command makes it could wait for a file system which the command itself serves.
func (r *request) changesModes() bool { return isRoot() && !r.cfg.OwnRoots }

// changeMode makes a call that changes a mode. The error is never zero unless the call is made.
func (r *request) changeMode() syscall.Errno {
	errno, _ := r.judgeMode(false)
	if errno == 0 && !r.made {
		return unix.EPERM
	}
	return errno
}

// judgeMode makes a call that changes a mode, with directories one that gives a directory the set-gid
// bit, and reports whether it is one. The error is never zero unless the call is made.
func (r *request) judgeMode(directories bool) (errno syscall.Errno, is bool) {
	fd, errno := r.openForMode(directories)
	if errno != 0 {
		return errno, !directories || errno != unix.EPERM
	}
	defer unix.Close(fd)
	opened := place{dir: -1, object: fd, exists: true}
	if r.stat(fd, "", &opened.facts) != 0 || directories && !opened.is(unix.S_IFDIR) {
		return 0, false
	}
	if r.kernels(&opened) {
		return cmp.Or(r.denyKernel(&opened), unix.EPERM), true
	}
	if !directories && !r.hasMounts() {
		return r.perform(fd)
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
	if wall != 0 {
		return wall, true // it has no name any more
	}
	return r.perform(fd)
}

// perform changes the mode of what the supervisor has opened.
func (r *request) perform(fd int) (errno syscall.Errno, is bool) {
	if !r.valid() {
		return unix.EPERM, true
	}
	errno = perform.AsCommand(func() syscall.Errno {
		return asErrno(unix.Fchmodat(r.proc, "self/fd/"+strconv.Itoa(fd), uint32(r.mode)&0o7777, 0))
	})
	r.made = errno == 0
	return errno, true
}

// openForMode opens what a call changes the mode of; with directories, EPERM is for what may be none.
func (r *request) openForMode(directories bool) (int, syscall.Errno) {
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
	case directories && !p.is(unix.S_IFDIR):
		return -1, unix.EPERM
	case p.named():
		return openat2(p.dir, p.name, pathFlags, 0)
	}
	return dup(p.object)
}
