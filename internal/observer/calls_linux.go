// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"golang.org/x/sys/unix"
)

// A kind is what a call does, as far as the answer depends on it.
type kind uint8

const (
	kindNone     kind = iota
	kindOpen          // opens, and perhaps makes, a file
	kindMake          // makes a name that must not be there
	kindUnlink        // removes a name that is no folder
	kindRmdir         // removes a folder
	kindRename        // moves a name
	kindLink          // makes a second name
	kindChange        // changes what a name leads to
	kindTouch         // changes what a descriptor leads to
	kindExec          // runs a program
	kindConnect       // fd, address, length
	kindBind          //
	kindSendTo        // fd, buffer, length, flags, address, length
	kindSendMsg       // fd, message
	kindSendMany      // fd, messages, count
	kindSocket        // family, type, protocol
	kindChdir         // changes the working folder
)

// A call is a system call with its arguments in one order for all variants.
type call struct {
	kind   kind
	dir    int32 // of path; atCwd
	path   uint64
	dir2   int32
	path2  uint64
	flags  uint64 // of open(2)
	follow bool   // a symbolic link at the end is followed
	bare   bool   // an empty path means the descriptor itself
	size   bool   // the call changes the content
}

const atCwd = int32(unix.AT_FDCWD)

// openHow is struct open_how of linux/openat2.h, up to what counts here.
const openHowFlags = 8

// decode reads the arguments of a call. The second result is false for calls that
// the supervisor does not know: they go on.
func (s *Supervisor) decode(n *notification) (call, bool) {
	a := &n.args
	fd := func(i int) int32 { return int32(a[i]) } // the kernel takes the low half, too
	follow := func(i int) bool { return a[i]&unix.AT_SYMLINK_NOFOLLOW == 0 }
	bare := func(i int) bool { return a[i]&unix.AT_EMPTY_PATH != 0 }
	switch n.nr {
	case unix.SYS_OPENAT:
		return opening(fd(0), a[1], a[2]), true
	case unix.SYS_OPENAT2:
		var how [openHowFlags]byte
		if a[3] < openHowFlags || peek(n.pid, a[2], how[:]) != len(how) {
			return call{}, false
		}
		return opening(fd(0), a[1], uint64At(how[:], 0)), true
	case unix.SYS_UNLINKAT:
		k := kindUnlink
		if a[2]&unix.AT_REMOVEDIR != 0 {
			k = kindRmdir
		}
		return call{kind: k, dir: fd(0), path: a[1]}, true
	case unix.SYS_RENAMEAT2, sysRenameat:
		return call{kind: kindRename, dir: fd(0), path: a[1], dir2: fd(2), path2: a[3]}, true
	case unix.SYS_MKDIRAT, unix.SYS_MKNODAT:
		return call{kind: kindMake, dir: fd(0), path: a[1]}, true
	case unix.SYS_SYMLINKAT:
		return call{kind: kindMake, dir: fd(1), path: a[2]}, true
	case unix.SYS_LINKAT:
		return call{kind: kindLink, dir: fd(0), path: a[1], dir2: fd(2), path2: a[3], follow: a[4]&unix.AT_SYMLINK_FOLLOW != 0, bare: bare(4)}, true
	case unix.SYS_TRUNCATE:
		return call{kind: kindChange, dir: atCwd, path: a[0], follow: true, size: true}, true
	case unix.SYS_FCHMODAT:
		return call{kind: kindChange, dir: fd(0), path: a[1], follow: true}, true
	case unix.SYS_FCHMODAT2:
		return call{kind: kindChange, dir: fd(0), path: a[1], follow: follow(3), bare: bare(3)}, true
	case unix.SYS_FCHOWNAT:
		return call{kind: kindChange, dir: fd(0), path: a[1], follow: follow(4), bare: bare(4)}, true
	case unix.SYS_UTIMENSAT:
		if a[1] == 0 {
			return call{kind: kindTouch, dir: fd(0)}, true
		}
		return call{kind: kindChange, dir: fd(0), path: a[1], follow: follow(3), bare: bare(3)}, true
	case unix.SYS_SETXATTR, unix.SYS_REMOVEXATTR:
		return call{kind: kindChange, dir: atCwd, path: a[0], follow: true}, true
	case unix.SYS_LSETXATTR, unix.SYS_LREMOVEXATTR:
		return call{kind: kindChange, dir: atCwd, path: a[0]}, true
	case unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT:
		return call{kind: kindChange, dir: fd(0), path: a[1], follow: follow(2), bare: bare(2)}, true
	case unix.SYS_FCHMOD, unix.SYS_FCHOWN, unix.SYS_FSETXATTR, unix.SYS_FREMOVEXATTR:
		return call{kind: kindTouch, dir: fd(0)}, true
	case unix.SYS_EXECVE:
		return call{kind: kindExec, dir: atCwd, path: a[0], follow: true}, true
	case unix.SYS_EXECVEAT:
		return call{kind: kindExec, dir: fd(0), path: a[1], follow: follow(4), bare: bare(4)}, true
	case unix.SYS_CHDIR, unix.SYS_FCHDIR:
		return call{kind: kindChdir}, true
	case unix.SYS_CONNECT:
		return call{kind: kindConnect}, true
	case unix.SYS_BIND:
		return call{kind: kindBind}, true
	case unix.SYS_SENDTO:
		return call{kind: kindSendTo}, true
	case unix.SYS_SENDMSG:
		return call{kind: kindSendMsg}, true
	case unix.SYS_SENDMMSG:
		return call{kind: kindSendMany}, true
	case unix.SYS_SOCKET:
		return call{kind: kindSocket}, true
	}
	return legacy(n)
}

// opening is a call of the open family.
func opening(dir int32, path, flags uint64) call {
	// A name that must not exist is not followed.
	made := flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL
	return call{kind: kindOpen, dir: dir, path: path, flags: flags, follow: flags&unix.O_NOFOLLOW == 0 && !made}
}
