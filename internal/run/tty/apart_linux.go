// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Apart returns a terminal for a program to read in place of f, of which this process is in the
// background: what is typed on f comes there while this process is in the foreground. It shows nothing,
// for f does. Nil, which is an empty input, is for a system that has no more terminals. Close closes it.
func (c *Console) Apart(f *os.File) io.Reader {
	keys, err := Open(f)
	if err != nil {
		return nil
	}
	master, terminal, err := pair()
	if err != nil {
		_ = keys.Close() // the error of before counts
		return nil
	}
	c.opened = append(c.opened, terminal, master)
	c.passing.Go(func() {
		<-c.over
		_ = keys.Close() // ends the read
	})
	go func() {
		buf := make([]byte, 4<<10)
		for {
			n, err := keys.Read(buf)
			if err != nil {
				_ = master.Close() // a hang-up, unless it is over
				return
			}
			if _, err := master.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	return terminal
}

// pair makes a terminal that shows nothing. It has the usual modes: those of f are the shell's now.
func pair() (master, terminal *os.File, err error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Open("/dev/ptmx", flags|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "terminal")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		_ = master.Close()
		return nil, nil, err
	}
	peer, _, errno := syscall.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, flags)
	if errno != 0 {
		_ = master.Close()
		return nil, nil, errno
	}
	terminal = os.NewFile(peer, "terminal")
	if modes, err := unix.IoctlGetTermios(int(peer), getModes); err == nil {
		modes.Lflag &^= unix.ECHO | unix.ECHONL | unix.ISIG // the terminal that is typed on does that
		_ = unix.IoctlSetTermios(int(peer), setModes, modes)
	}
	return master, terminal, nil
}

// Written returns f open for writing only, for a program that must not read it; f itself where it cannot be
// opened again, as that of another user.
func (c *Console) Written(f *os.File) io.Writer {
	name := fmt.Sprintf("/proc/self/fd/%d", descriptor(f))
	again, err := os.OpenFile(name, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return f
	}
	c.opened = append(c.opened, again)
	return again
}
