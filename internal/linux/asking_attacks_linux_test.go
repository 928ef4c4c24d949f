// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// askedParts are calls on a path, and programs that do more than one call.
func askedParts() map[string]func(at, ws string) error {
	return map[string]func(at, ws string) error{
		"put": func(at, _ string) error {
			return openIn(at, unix.O_CREAT|unix.O_WRONLY|unix.O_NONBLOCK, 0o666, writes("x"))
		},
		"make":    func(at, _ string) error { return unix.Mkdir(at, 0o777) },
		"take":    func(at, ws string) error { return unix.Rename(at, ws+"/new") },
		"give":    func(at, ws string) error { return unix.Rename(ws+"/dir", at) },
		"join":    func(at, ws string) error { return unix.Link(at, ws+"/new") },
		"remove":  func(at, _ string) error { return unix.Rmdir(at) },
		"replace": func(at, _ string) error { return unix.Rename(at, at+"2") },
		"foreign": func(at, _ string) error { return unix.Chown(at, 12345, -1) },
		"resolve": func(at, _ string) error {
			fd, err := unix.Openat2(unix.AT_FDCWD, at, &unix.OpenHow{Flags: unix.O_WRONLY,
				Resolve: unix.RESOLVE_NO_MAGICLINKS})
			return errors.Join(err, unix.Close(fd))
		},
		"temporary": func(at, _ string) error {
			return openIn(at, unix.O_TMPFILE|unix.O_WRONLY, 0o666, writes("x"))
		},
		"signaled": func(at, _ string) error {
			got := make(chan os.Signal, 1)
			signal.Notify(got, unix.SIGUSR1)
			err := unix.Mkdir(at, 0o777)
			<-got
			return err
		},
		"connect":   func(at, _ string) error { return sendWord(at, unix.SOCK_STREAM, unix.Connect) },
		"datagram":  func(at, ws string) error { return sendFrom(ws+"/own", at, true) },
		"connected": func(at, ws string) error { return sendFrom(ws+"/own", at, false) },
	}
}

// sendWord connects to a socket and sends it a word.
func sendWord(at string, kind int, reach func(int, unix.Sockaddr) error) error {
	s, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	if err := reach(s, &unix.SockaddrUnix{Name: at}); err != nil {
		return err
	}
	return writes("word")(s)
}

// sendFrom sends a datagram, to an address or after a connect.
func sendFrom(own, at string, addressed bool) error {
	defer os.Remove(own)
	return sendWord(at, unix.SOCK_DGRAM, func(s int, to unix.Sockaddr) error {
		if err := unix.Bind(s, &unix.SockaddrUnix{Name: own}); err != nil {
			return err
		}
		if addressed {
			if err := unix.Sendto(s, []byte("addressed"), 0, to); err != nil {
				return err
			}
		}
		return unix.Connect(s, to)
	})
}
