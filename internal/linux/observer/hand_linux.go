// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/perform"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Where hard links are protected, Landlock denies the command to open any file of a shared
// place for writing, whatever name it uses. The supervisor opens the file in its place,
// looks at what it has opened, and hands in the descriptor. So nothing depends on what a
// name leads to a moment later, and what is answered with "continue" is denied by Landlock.

// handFlags are added when the supervisor opens a file. Without O_NONBLOCK a lease or a named
// pipe would make it wait; without O_NOCTTY it could get a terminal.
const handFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// byFlag ends the reason of a denial.
const byFlag = " (--protect-hard-links)"

// maxAgain bounds how often a call is judged again.
const maxAgain = 8

// hand makes a call that changes the content of a file, in a shared place. Zero without made
// lets the call go on, to the error of the kernel.
func (r *request) hand(p *place) syscall.Errno {
	const exclusive = unix.O_CREAT | unix.O_EXCL
	var how handing
	switch temporary := r.flags&unix.O_TMPFILE == unix.O_TMPFILE; {
	case r.within:
		return unix.ENOSYS // programs use openat then
	case p.exists && p.is(unix.S_IFIFO):
		return r.refuseLink(p, unix.EACCES, "named pipe"+byFlag)
	case r.kind == kindTruncate:
		if int64(r.n.Args[1]) < 0 {
			return 0
		}
		how = handing{flags: unix.O_WRONLY}
	case temporary && p.exists && p.is(unix.S_IFDIR):
		how = handing{flags: r.flags, creates: true}
	case temporary || r.flags&unix.O_ACCMODE == 0 || r.flags&unix.O_DIRECTORY != 0:
		return 0
	case !p.exists && r.flags&unix.O_CREAT == 0:
		return 0
	case !p.exists:
		how = handing{flags: r.flags | exclusive, creates: true}
	case p.is(unix.S_IFREG) && r.flags&exclusive != exclusive:
		how = handing{flags: r.flags &^ (unix.O_EXCL | unix.O_TRUNC)} // truncated when it was looked at
	default:
		return 0
	}
	errno := perform.AsCommand(func() syscall.Errno { return r.handAs(p, &how) })
	switch changed := errno == unix.EEXIST && r.flags&unix.O_EXCL == 0 || errno == unix.ELOOP; {
	case !changed:
		return errno
	case r.again == maxAgain:
		return unix.EAGAIN
	}
	r.again++ // another task made the name, or put a link there
	return r.judgePath()
}

// A handing is how the supervisor opens a file for the command.
type handing struct {
	flags   uint64
	creates bool
}

// handAs opens the file, with the rights that the command has, and keeps the descriptor where
// the command may have it.
func (r *request) handAs(p *place, how *handing) syscall.Errno {
	const owner = 0o700
	mode := uint32(r.mode) & owner // where the file has gone meanwhile and is created
	if how.creates {
		mode = r.modeIn(p)
	}
	fd, errno := r.openPlace(p, how.flags, mode)
	if errno != 0 {
		return errno
	}
	if errno = r.checkOpened(p, fd, how, mode); errno == 0 && r.kind == kindTruncate {
		errno = asErrno(unix.Ftruncate(fd, int64(r.n.Args[1])))
	}
	if errno != 0 || r.kind == kindTruncate {
		unix.Close(fd)
		r.made = errno == 0
		return errno
	}
	r.made, r.fd = true, fd
	return 0
}

// openPlace opens a place by its name, or by the descriptor that led to it.
func (r *request) openPlace(p *place, flags uint64, mode uint32) (int, syscall.Errno) {
	dir, name := p.dir, p.name
	flags |= handFlags
	if !p.named() {
		dir, name = r.proc, "self/fd/"+strconv.Itoa(p.object)
		flags &^= unix.O_NOFOLLOW | unix.O_CREAT
	}
	for {
		fd, err := unix.Openat(dir, name, int(flags), mode)
		if errno := asErrno(err); errno != unix.EINTR {
			return fd, errno
		}
	}
}

// checkOpened looks at what was opened, which a name may lead to no longer, and prepares it.
func (r *request) checkOpened(p *place, fd int, how *handing, mode uint32) syscall.Errno {
	opened := place{dir: -1, object: fd, exists: true}
	if errno := r.stat(fd, "", &opened.facts); errno != 0 {
		return errno
	}
	switch {
	case !opened.is(unix.S_IFREG) || !r.isShared(&opened):
		return unix.EACCES
	case r.linkedElsewhere(fd, &opened.facts):
		p.facts = opened.facts
		return r.refuseLink(p, unix.EPERM, "hard link, "+strconv.Itoa(int(max(opened.links, 2)))+
			" names"+byFlag)
	}
	const permissions = 0o1777
	if how.creates && uint32(opened.mode)&permissions != mode && !r.hasDefaultACL(p) {
		if errno := asErrno(unix.Fchmod(fd, mode)); errno != 0 { // this process has a umask, too
			return errno
		}
	}
	if r.kind == kindTruncate {
		return 0
	}
	if !how.creates && r.flags&unix.O_TRUNC != 0 {
		if errno := asErrno(unix.Ftruncate(fd, 0)); errno != 0 {
			return errno
		}
	}
	const status = unix.O_APPEND | unix.O_DIRECT | unix.O_NOATIME | unix.O_NONBLOCK
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, int(r.flags&status))
	return asErrno(err)
}

// refuseLink notes a denial that no grant changes, with its reason.
func (r *request) refuseLink(p *place, errno syscall.Errno, why string) syscall.Errno {
	denied := r.deny(sandbox.Denial{
		Access: sandbox.Access{Op: sandbox.Write, Path: strings.TrimSuffix(r.pathOf(p), deleted)}, Rule: why,
		NoGrant: true,
	}, errno)
	if denied == 0 {
		return errno // the task has ended
	}
	return denied
}

// modeIn returns the mode of a file that the task creates at a place. Set-id bits are left
// out. A directory with a default list of access rights has the kernel ignore the umask.
func (r *request) modeIn(p *place) uint32 {
	const permissions = 0o1777
	mode := uint32(r.mode) & permissions
	if r.hasDefaultACL(p) {
		return mode
	}
	return mode &^ r.umask()
}

// hasDefaultACL reports whether new files at a place get their rights from its directory.
func (r *request) hasDefaultACL(p *place) bool {
	dir := "/proc/self/fd/" + strconv.Itoa(max(p.dir, p.object))
	if p.exists && p.named() {
		dir += "/" + p.name // of O_TMPFILE
	}
	n, err := unix.Getxattr(dir, "system.posix_acl_default", nil)
	return err == nil && n > 0
}

// deliver hands in the descriptor and answers. The supervisor's own is closed before the task
// goes on, which could not execute the file else (ETXTBSY).
func (r *request) deliver() error {
	answer := notify.Response{ID: r.n.ID}
	if r.fd >= 0 {
		n, errno := r.l.AddFD(r.n.ID, r.fd, r.flags&unix.O_CLOEXEC)
		unix.Close(r.fd)
		answer.Val, answer.Errno = int64(n), -int32(errno)
		if errno != 0 {
			answer.Val = 0
		}
	}
	return r.l.Send(&answer)
}

// asErrno returns the number of an error of package unix; zero for nil.
func asErrno(err error) syscall.Errno {
	errno, _ := err.(syscall.Errno) //nolint:errorlint // x/sys returns the number itself
	return errno
}
