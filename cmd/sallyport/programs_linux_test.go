// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// programs are what this test binary can be, by name.
func programs() map[string]func() {
	return map[string]func(){"sallyport": managed, "sallyport-sh": managed,
		"act": act, "chaos": chaosMain, "unlocked": unlocked,
		"lockall": lockAll, "eavesdrop": eavesdrop, "ontmpfs": onTmpfs}
}

// onTmpfs runs a program with a small file system at a directory. It must be in a mount namespace of its own.
func onTmpfs() {
	check(unix.Mount("tmpfs", os.Args[1], "tmpfs", 0, "size=256k,mode=0700"))
	program, err := exec.LookPath(os.Args[2])
	check(err)
	check(unix.Exec(program, os.Args[2:], os.Environ()))
}

// unlocked waits until no process has a lock on any of the files.
func unlocked() {
	for _, name := range os.Args[1:] {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		check(err)
		for err = unix.EINTR; err == unix.EINTR; {
			err = unix.Flock(fd, unix.LOCK_EX)
		}
		check(err)
		unix.Close(fd)
	}
}

// lockAll takes every lock that it gets, of both kinds, on all that it can open below directories. It
// says how many it has, and keeps them until its input ends.
func lockAll() {
	n := 0
	for _, dir := range os.Args[1:] {
		_ = filepath.WalkDir(dir, func(name string, _ fs.DirEntry, _ error) error {
			fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil //nolint:nilerr // it is out of reach
			}
			if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
				n++
			}
			_ = unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
			return nil
		})
	}
	fmt.Println("locked", n)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
