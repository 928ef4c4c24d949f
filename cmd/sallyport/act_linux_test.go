// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// act is a program for the cases of denials: "act WHAT ARG... WHAT ARG..." does one
// thing after the other by bare system calls, prints "errno NAME" for each that is
// refused, and ends with 0 whatever happened.
func act() {
	args := os.Args[1:]
	next := func() string {
		if len(args) == 0 {
			fmt.Println("act: an argument is missing")
			os.Exit(2)
		}
		word := args[0]
		args = args[1:]
		return word
	}
	for len(args) > 0 {
		what := next()
		err := actFile(what, next)
		if errors.Is(err, errNotMine) {
			err = actName(what, next)
		}
		if errors.Is(err, errNotMine) {
			err = actSocket(what, next)
		}
		if errors.Is(err, errNotMine) {
			err = actProxy(what, next)
		}
		if errors.Is(err, errNotMine) {
			fmt.Println("act: what is", what)
			os.Exit(2)
		}
		var errno unix.Errno
		if errors.As(err, &errno) {
			fmt.Println("errno", unix.ErrnoName(errno))
		} else if err != nil {
			fmt.Println("act:", err)
		}
	}
}

var errNotMine = errors.New("another function knows it")

// closed closes what a call has opened, and returns its error.
func closed(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// actFile does what opens or changes a file.
func actFile(what string, next func() string) error {
	open := func(name string, flags int) error {
		fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if flags&unix.O_ACCMODE == unix.O_RDONLY {
			return nil
		}
		_, err = unix.Write(fd, []byte("x"))
		return err
	}
	switch what {
	case "in":
		return unix.Chdir(next())
	case "open-w":
		return open(next(), unix.O_WRONLY)
	case "creat":
		return open(next(), unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC)
	case "excl":
		return open(next(), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
	case "append":
		return open(next(), unix.O_WRONLY|unix.O_APPEND)
	case "open-trunc":
		return open(next(), unix.O_RDONLY|unix.O_TRUNC)
	case "tmpfile":
		return open(next(), unix.O_TMPFILE|unix.O_RDWR)
	case "openat2":
		return closed(unix.Openat2(unix.AT_FDCWD, next(),
			&unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o600}))
	case "dirfd", "fchmodat":
		dir, err := unix.Open(next(), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		if what == "fchmodat" {
			return unix.Fchmodat(dir, next(), 0o600, 0)
		}
		return closed(unix.Openat(dir, next(), unix.O_CREAT|unix.O_WRONLY, 0o600))
	case "reopen":
		fd, err := unix.Open(next(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY)
	case "truncate":
		return unix.Truncate(next(), 0)
	case "chmod":
		return unix.Chmod(next(), 0o600)
	case "chown":
		return unix.Chown(next(), os.Getuid(), os.Getgid())
	case "utimes":
		return unix.Utimes(next(), make([]unix.Timeval, 2))
	case "setxattr":
		return unix.Setxattr(next(), "user.x", []byte("x"), 0)
	}
	return errNotMine
}

// actName does what changes a directory.
func actName(what string, next func() string) error {
	switch what {
	case "mkdir":
		return unix.Mkdir(next(), 0o700)
	case "rmdir":
		return unix.Rmdir(next())
	case "unlink":
		return unix.Unlink(next())
	case "rename":
		return unix.Rename(next(), next())
	case "exchange":
		return unix.Renameat2(unix.AT_FDCWD, next(), unix.AT_FDCWD, next(), unix.RENAME_EXCHANGE)
	case "link":
		return unix.Link(next(), next())
	case "symlink":
		return unix.Symlink(next(), next())
	case "mkfifo":
		return unix.Mkfifo(next(), 0o600)
	case "mknod":
		return unix.Mknod(next(), unix.S_IFREG|0o600, 0)
	}
	return errNotMine
}

// actSocket does what needs a network.
func actSocket(what string, next func() string) error {
	switch what {
	case "tcp", "udp", "sendto", "sendmsg", "bind":
		kind := unix.SOCK_STREAM
		if what != "tcp" && what != "bind" {
			kind = unix.SOCK_DGRAM
		}
		to, family, err := address(next())
		if err != nil {
			return err
		}
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		switch what {
		case "sendto":
			return unix.Sendto(fd, []byte("x"), 0, to)
		case "sendmsg":
			return unix.Sendmsg(fd, []byte("x"), nil, to, 0)
		case "bind":
			return unix.Bind(fd, to)
		}
		return unix.Connect(fd, to)
	case "unix", "unix-bind":
		to := &unix.SockaddrUnix{Name: next()}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if what == "unix-bind" {
			return unix.Bind(fd, to)
		}
		return unix.Connect(fd, to)
	case "unixgram", "unixgram-sendto", "unixgram-sendmsg":
		to := &unix.SockaddrUnix{Name: next()}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		switch what {
		case "unixgram-sendto":
			return unix.Sendto(fd, []byte("x"), unix.MSG_DONTWAIT, to)
		case "unixgram-sendmsg":
			return unix.Sendmsg(fd, []byte("x"), nil, to, unix.MSG_DONTWAIT)
		}
		return unix.Connect(fd, to)
	case "unix-pair":
		return talk("unix", next())
	case "loopback":
		if network := next(); network == "tcp6" {
			return talk(network, "[::1]:0")
		}
		return talk("tcp4", "127.0.0.1:0")
	}
	return errNotMine
}

func address(text string) (unix.Sockaddr, int, error) {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return nil, 0, err
	}
	if at.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}, unix.AF_INET, nil
	}
	return &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}, unix.AF_INET6, nil
}

// talk serves one connection and uses it.
func talk(network, at string) error {
	l, err := net.Listen(network, at)
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.WriteString(c, "hello")
			c.Close()
		}
	}()
	c, err := net.Dial(network, l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	fmt.Println(strings.TrimSpace(string(text)), filepath.Base(network))
	return err
}
