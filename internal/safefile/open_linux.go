// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Open opens a regular file for reading. Symbolic links are followed. It does not block, but
// for [Patience] where another program holds a lease on the file. The error is an
// [*fs.PathError]: [ErrNotPlain] for anything else, [ErrLeased], or the system's.
func Open(path string) (*os.File, error) {
	failed := func(err error) error { return &fs.PathError{Op: "open", Path: path, Err: err} }
	place, err := open(path, unix.O_PATH)
	if err != nil {
		return nil, failed(err)
	}
	defer unix.Close(place)
	var st unix.Stat_t
	if err = unix.Fstat(place, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrNotPlain
	}
	if err != nil {
		return nil, failed(err)
	}
	// The link leads to what was looked at, whatever has the name now.
	name := "/proc/self/fd/" + strconv.Itoa(place)
	fd, err := open(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, unix.EWOULDBLOCK) {
		fd, err = wait(place)
	}
	if err != nil {
		return nil, failed(err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// wait opens a file, which place describes, when the lease on it is given up.
func wait(place int) (int, error) {
	own, err := unix.FcntlInt(uintptr(place), unix.F_DUPFD_CLOEXEC, 0) // it may outlive the caller
	if err != nil {
		return -1, err
	}
	type opened struct {
		fd  int
		err error
	}
	done := make(chan opened)
	late := time.NewTimer(Patience)
	defer late.Stop()
	given := make(chan struct{})
	defer close(given)
	go func() {
		fd, err := open("/proc/self/fd/"+strconv.Itoa(own), unix.O_RDONLY)
		unix.Close(own)
		select {
		case done <- opened{fd, err}:
		case <-given:
			if err == nil {
				unix.Close(fd)
			}
		}
	}()
	select {
	case o := <-done:
		return o.fd, o.err
	case <-late.C:
		return -1, ErrLeased
	}
}

// Names returns how many names an open file has: hard links.
func Names(f *os.File) uint64 {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0
	}
	return uint64(st.Nlink) //nolint:unconvert // it is smaller on some systems
}

func open(path string, flags int) (int, error) {
	for {
		if fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0); !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
