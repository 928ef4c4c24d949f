// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNoTask says that no task was made in the namespaces of a command.
var errNoTask = errors.New("launch: no task in the namespaces of the command")

// SendInside makes one sendmsg(2) from a process namespace, whose user namespace is the other one: the
// kernel lets only a process there say who else there sends (SCM_CREDENTIALS). The socket is this process's,
// and so is all memory that the message leads to. The call does not block. An error says that nothing was
// sent.
//
// The task that makes it lives for that call alone, with the one right that it needs. It shares this
// process's memory. No command in these namespaces may trace it, because none has a right there.
func SendInside(user, pid, sock int, h *unix.Msghdr, flags int) (sent int, errno syscall.Errno, err error) {
	low := newLowering(fds{enter: []int{user, pid}}, 1)
	low.enter(0, unix.CLONE_FILES)
	low.lowerStep(&Step{Op: OpCaps, Value: 1 << unix.CAP_SYS_ADMIN})
	n := low.newSlot()
	*n = ^uint64(0)
	call := len(low.calls)
	low.call("sendmsg", unix.SYS_SENDMSG, num(sock), arg{v: uintptr(unsafe.Pointer(h))},
		num(flags|unix.MSG_DONTWAIT)).store(n)
	low.call("exit_group", unix.SYS_EXIT_GROUP, num(0))
	t := perform(low)
	defer runtime.KeepAlive(h)
	switch {
	case t.pid < 0:
		return 0, 0, errNoTask
	case t.lost != nil:
		return 0, 0, t.lost
	}
	collectNow(int(t.pidfd))
	switch {
	case *n != ^uint64(0):
		return int(*n), 0, nil
	case t.c.errno == 0:
		return 0, unix.EINTR, nil // it was killed, perhaps after the call
	case t.failedAt(low) != call:
		return 0, 0, errNoTask
	}
	return 0, syscall.Errno(t.c.errno), nil
}

// SocketInside makes a socket in a network namespace, whose user namespace is the other one.
func SocketInside(user, network, family, kind, protocol int) (int, error) {
	low := newLowering(fds{}, 1)
	low.step = beforeSteps
	low.call("setns", unix.SYS_SETNS, num(user), num(unix.CLONE_NEWUSER))
	low.call("setns", unix.SYS_SETNS, num(network), num(unix.CLONE_NEWNET))
	fd := low.newSlot()
	low.call("socket", unix.SYS_SOCKET, num(family), num(kind|unix.SOCK_CLOEXEC), num(protocol)).store(fd)
	low.call("exit_group", unix.SYS_EXIT_GROUP, num(0))
	t := perform(low)
	if t.pid < 0 {
		return -1, errNoTask
	}
	collectNow(int(t.pidfd))
	switch {
	case t.c.errno != 0:
		return -1, syscall.Errno(t.c.errno)
	case *fd == 0:
		return -1, errNoTask
	}
	return int(*fd), nil
}

// perform makes a task that performs calls with this process's memory and descriptors, and ends.
func perform(low *lowering) *task {
	low.link()
	t := new(task)
	t.prepare(0, unix.CLONE_FILES, low, 0)
	t.clone()
	runtime.KeepAlive(low)
	return t
}
