// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// Requests of linux/nsfs.h and linux/sockios.h.
const (
	NSUser   = 0xb701 // NS_GET_USERNS
	NSParent = 0xb702 // NS_GET_PARENT
	SocketNS = 0x894c // SIOCGSKNS
)

// MaySpeak reports whether this process may send as another one.
func MaySpeak(id string) bool {
	pid, err := strconv.Atoi(id)
	if err != nil {
		return false
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	return unix.Sendmsg(pair[0], []byte{0}, unix.UnixCredentials(&unix.Ucred{
		Pid: int32(pid), Uid: uint32(unix.Geteuid()), Gid: uint32(unix.Getegid()),
	}), nil, 0) == nil
}

// OwnerOf opens the user namespace that a namespace belongs to, where that is a sandbox's: in one that a
// command has made, it has rights, and so could trace a task of ours.
func OwnerOf(space int) (user int, ok bool) {
	user, err := RelatedSpace(space, NSUser)
	if err != nil {
		return -1, false
	}
	var own, above unix.Stat_t
	parent, err := RelatedSpace(user, NSParent)
	if err == nil {
		ok = unix.Stat("/proc/self/ns/user", &own) == nil && unix.Fstat(parent, &above) == nil &&
			own.Ino == above.Ino && own.Dev == above.Dev
		unix.Close(parent)
	}
	if !ok {
		unix.Close(user)
		return -1, false
	}
	return user, true
}

// RelatedSpace opens a namespace that another one, or a socket, leads to.
func RelatedSpace(fd int, request uintptr) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, 0)
	if errno != 0 {
		return -1, errno
	}
	unix.CloseOnExec(int(n))
	return int(n), nil
}
