// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// A duplicate of a socket of the command shares its settings. Connecting it, and closing
// it where it has become the last one, can take as long as the command wishes (SO_SNDTIMEO,
// SO_LINGER), so neither is done by the goroutine that judges.

// pidfdThread names a thread instead of a process (PIDFD_THREAD of linux/pidfd.h).
const pidfdThread = unix.O_EXCL

// slotTime is how long a call waits for a token of a duplicate.
const slotTime = time.Second

// duplicate duplicates a descriptor of the task, which is given back with release or
// closeForeign. It fails where too many are held.
func (r *request) duplicate(fd int32) (int, syscall.Errno) {
	pidfd, errno := r.pidfd()
	if errno != 0 {
		return -1, errno
	}
	defer unix.Close(pidfd)
	return r.duplicateFrom(pidfd, fd)
}

// pidfd opens the task.
func (r *request) pidfd() (int, syscall.Errno) {
	pidfd, err := unix.PidfdOpen(int(r.n.PID), pidfdThread)
	if err != nil { // before Linux 6.9 only the first thread can be named
		if pidfd, err = unix.PidfdOpen(r.pid(), 0); err != nil {
			return -1, unix.ESRCH
		}
	}
	return pidfd, 0
}

// duplicateFrom is duplicate for a task that is open.
func (r *request) duplicateFrom(pidfd int, fd int32) (int, syscall.Errno) {
	if !r.slot() {
		return -1, unix.EAGAIN
	}
	own, err := unix.PidfdGetfd(pidfd, int(fd), 0)
	if err != nil {
		<-r.foreign
		return -1, unix.EBADF
	}
	return own, 0
}

// slot takes a token for a duplicate. Where all are held, most are given back in a moment: only sockets that
// the command has linger hold theirs, and with them its own calls, for no longer than slotTime each.
func (r *request) slot() bool {
	select {
	case r.foreign <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(slotTime)
	defer timer.Stop()
	select {
	case r.foreign <- struct{}{}:
		return true
	case <-timer.C:
	case <-r.ctx.Done():
	}
	return false
}

// release closes a duplicate in a goroutine of its own, for which nothing waits.
func (s *Supervisor) release(fd int) {
	go s.closeForeign(fd)
}

// closeForeign closes a duplicate. A close that lingers is interrupted: the kernel goes on
// in the background then, as it does for a socket whose process has ended.
func (s *Supervisor) closeForeign(fd int) {
	tasks.Interruptible(func() { unix.Close(fd) }, func() bool { return true })
	<-s.foreign
}
