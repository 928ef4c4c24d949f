// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openList opens the list of processes of a group of version 2.
func openList(group int) (int, error) {
	fd, err := unix.Openat(group, "cgroup.procs", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		fd, err = raise(fd)
	}
	if err != nil {
		return -1, &CgroupError{Err: err}
	}
	return fd, nil
}

// cloneError tells a refusal of the group from one of the namespaces: the kernel
// has answers that only a group gives (clone(2)).
func cloneError(group int, errno syscall.Errno) error {
	if group > 0 {
		switch errno {
		case unix.EACCES, unix.EBUSY, unix.EOPNOTSUPP, unix.ENODEV, unix.EBADF, unix.E2BIG:
			return &CgroupError{Err: errno}
		}
	}
	return &StepError{Index: -1, Call: "clone", Errno: errno}
}

// lowerResource lowers the steps that put a task under limits of the system's.
func (l *lowering) lowerResource(s *Step) error {
	if s.Op == OpJoin {
		if s.From < 1 || s.From > len(l.fds.join) {
			return &ScriptError{Step: l.step, Reason: fmt.Sprintf("join-cgroup needs entry %d of Files.Join", s.From)}
		}
		l.join(l.fds.join[s.From-1])
		return nil
	}
	const most = 1 << 10 // 8192 processors, as many as Linux can be built for
	if len(s.Data) == 0 || len(s.Data) > most {
		return &ScriptError{Step: l.step, Reason: fmt.Sprintf("affinity needs 1 to %d bytes", most)}
	}
	mask := l.bytes((len(s.Data) + 7) &^ 7) // the kernel takes whole words
	clear(mask)
	copy(mask, s.Data)
	l.call("sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, zero(), num(uintptr(len(mask))), arg{v: uintptr(unsafe.Pointer(&mask[0]))})
	return nil
}

// join writes the task itself into a control group's open list. A task that has
// just been cloned is alone in its process, so both kinds of list will do; only for
// the one called tasks need the kernel not hold up everybody else's forks.
func (l *lowering) join(fd int) {
	text := l.bytes(1)
	text[0] = '0' // whoever writes
	l.call("write", unix.SYS_WRITE, num(uintptr(fd)), arg{v: uintptr(unsafe.Pointer(&text[0]))}, num(1)).expect(1)
}
