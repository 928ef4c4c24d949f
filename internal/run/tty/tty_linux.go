// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The requests for modes, see ioctl_tty(2).
const (
	getModes = unix.TCGETS
	setModes = unix.TCSETS
)

func continueOutput(fd int) error { return unix.IoctlSetInt(fd, unix.TCXONC, unix.TCOON) }

func discardInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }

// reopen opens the terminal behind fd once more, so that it can be read without blocking
// and the description that others share does not change. It returns nil if the terminal
// cannot be opened, as for a user who has taken over another one's terminal.
func reopen(fd int) *os.File {
	again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd),
		unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(again), "terminal")
}

// awaitNext blocks until more comes to the terminal than is there, and this process is in its
// foreground then, or there is something to read from wake, or the terminal is gone.
func awaitNext(fd, wake int) error {
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(set)
	for _, e := range []unix.EpollEvent{
		{Fd: int32(fd), Events: unix.EPOLLIN | unix.EPOLLET}, {Fd: int32(wake), Events: unix.EPOLLIN},
	} {
		if err := unix.EpollCtl(set, unix.EPOLL_CTL_ADD, int(e.Fd), &e); err != nil {
			return err
		}
	}
	for {
		var events [2]unix.EpollEvent
		n, err := unix.EpollWait(set, events[:], -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == wake || e.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 || foreground(fd) {
				return nil
			}
		}
	}
}

// await blocks until there is something to read from the terminal or from wake, or the
// terminal is gone. Without keys, only wake and the end count.
func await(fd, wake int, keys bool) (ready, woken, gone bool, err error) {
	fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(wake), Events: unix.POLLIN}}
	if keys {
		fds[0].Events = unix.POLLIN
	}
	for {
		if _, err = unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	got := fds[0].Revents
	return got&unix.POLLIN != 0, fds[1].Revents != 0, got&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0, err
}
