// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Open opens a regular file for reading. Symbolic links are followed. It does not block, but
// for [Patience] where another program holds a lease on the file. The error is an
// [*fs.PathError]: [ErrNotPlain] for anything else, [ErrLeased], or the system's.
func Open(path string) (*os.File, error) {
	fd, _, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Read returns what a file begins with, which [Open] would open: as many bytes as most, and whether there
// are more.
func Read(path string, most int64) (text []byte, more bool, err error) {
	fd, size, err := openPlain(path)
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(fd)
	text, err = read(fd, min(size, most)+1, most+1)
	if err != nil {
		err = &fs.PathError{Op: "read", Path: path, Err: err}
	}
	if more = int64(len(text)) > most; more {
		text = text[:most]
	}
	return text, more, err
}

// ReadSystem returns the content of a file that only the system or this user writes, such as one below
// /proc. It is [os.ReadFile] without the preparations for a file that has to be waited for, which are half
// of its calls.
func ReadSystem(path string) ([]byte, error) {
	fd, err := open(path, unix.O_RDONLY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	const usual = 4 << 10
	text, err := read(fd, usual, math.MaxInt64)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return text, nil
}

// read reads to the end of a file, or as many bytes as most. About as many are expected.
func read(fd int, about, most int64) ([]byte, error) {
	text := make([]byte, 0, about)
	for int64(len(text)) < most {
		text = slices.Grow(text, 1)
		n, err := unix.Read(fd, text[len(text):min(int64(cap(text)), most)])
		switch {
		case errors.Is(err, unix.EINTR):
		case n <= 0 || err != nil:
			return text, err
		default:
			text = text[:len(text)+n]
		}
	}
	return text, nil
}

// openPlain is Open without the rest of package os, and returns the size as well.
func openPlain(path string) (fd int, size int64, err error) {
	failed := func(err error) (int, int64, error) {
		return -1, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	place, err := open(path, unix.O_PATH)
	if err != nil {
		return failed(err)
	}
	defer unix.Close(place)
	var st unix.Stat_t
	if err = unix.Fstat(place, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrNotPlain
	}
	if err != nil {
		return failed(err)
	}
	// The link leads to what was looked at, whatever has the name now.
	name := "/proc/self/fd/" + strconv.Itoa(place)
	fd, err = open(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, unix.EWOULDBLOCK) {
		fd, err = wait(place)
	}
	if err != nil {
		return failed(err)
	}
	return fd, st.Size, nil
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
