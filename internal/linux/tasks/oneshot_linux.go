// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Waiter waits for one descriptor to be readable. [NewWaiter] makes it. One goroutine at a
// time may wait.
type Waiter struct {
	watched int
	closed  atomic.Bool
	file    *os.File
	raw     syscall.RawConn
}

// NewWaiter returns a Waiter for a descriptor. The caller closes the descriptor after the
// Waiter.
func NewWaiter(fd int) (*Waiter, error) {
	own, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	err = unix.SetNonblock(own, true)
	if err == nil {
		err = unix.EpollCtl(own, unix.EPOLL_CTL_ADD, fd,
			&unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: int32(fd)})
	}
	if err != nil {
		unix.Close(own)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	w := &Waiter{watched: fd, file: os.NewFile(uintptr(own), "epoll")}
	if w.raw, err = w.file.SyscallConn(); err != nil {
		w.file.Close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return w, nil
}

// Wait blocks until the descriptor is readable or hung up. After Close it returns an
// error that is [os.ErrClosed].
func (w *Waiter) Wait() error {
	once := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(w.watched)}
	armed := false
	var failed error
	err := w.raw.Read(func(fd uintptr) bool {
		if !armed {
			armed = true
			if failed = unix.EpollCtl(int(fd), unix.EPOLL_CTL_MOD, w.watched, &once); failed != nil {
				return true
			}
		}
		// Right after the arming, too: an earlier hang-up makes no second edge, and the
		// poller reported the first one before this wait.
		var got [1]unix.EpollEvent
		for {
			n, err := unix.EpollWait(int(fd), got[:], 0)
			if err != unix.EINTR {
				failed = err
				return err != nil || n > 0
			}
		}
	})
	if w.closed.Load() {
		return os.ErrClosed
	}
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	return nil
}

// Close ends a wait, and the Waiter.
func (w *Waiter) Close() error {
	w.closed.Store(true)
	return w.file.Close()
}
