// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// An Own is an open directory of sallyport's own, under the conditions of [OpenTreePath]. What is done
// with it is done by its descriptor: it makes two calls where package os makes five.
type Own struct {
	FD   int    // until Close
	Path string // by which it was opened
}

// OpenOwn opens a directory. Links on the way to it are followed.
func OpenOwn(path string) (*Own, error) { return openOwn(unix.AT_FDCWD, path, path, false) }

// MakeOwn is [OpenOwn], and makes the directory and those on the way to it if they are missing. A
// directory of this user's that others can enter is closed to them.
func MakeOwn(path string) (*Own, error) {
	d, err := openOwn(unix.AT_FDCWD, path, path, true)
	if errors.Is(err, unix.ENOENT) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		d, err = makeOwn(unix.AT_FDCWD, path, path)
	}
	return d, err
}

// Make opens the directory name, and makes it if it is missing, as [MakeOwn] does.
func (d *Own) Make(name string) (*Own, error) {
	path := filepath.Join(d.Path, name)
	sub, err := openOwn(d.FD, name, path, true)
	if errors.Is(err, unix.ENOENT) {
		sub, err = makeOwn(d.FD, name, path)
	}
	return sub, err
}

// Open opens the directory name, as [OpenOwn] does.
func (d *Own) Open(name string) (*Own, error) {
	return openOwn(d.FD, name, filepath.Join(d.Path, name), false)
}

// Close closes the descriptor. It may be called twice.
func (d *Own) Close() error {
	if d.FD < 0 {
		return nil
	}
	err := unix.Close(d.FD)
	d.FD = -1
	return err
}

// Into makes a file of the directory, which is closed in its place.
func (d *Own) Into() *os.File {
	f := os.NewFile(uintptr(d.FD), d.Path)
	d.FD = -1
	return f
}

func makeOwn(at int, name, path string) (*Own, error) {
	if err := unix.Mkdirat(at, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return openOwn(at, name, path, true)
}

// openOwn opens a directory, which must be this user's, and looks at what it has opened.
func openOwn(at int, name, path string, narrow bool) (*Own, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, notOpened(at, name, path, err)
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch {
	case err != nil:
		err = &os.PathError{Op: "stat", Path: path, Err: err}
	case int(st.Uid) != euid():
		err = &ForeignError{Path: path, Why: whyForeign}
	case st.Mode&0o077 != 0 && narrow:
		if err = unix.Fchmod(fd, 0o700); err != nil {
			err = &os.PathError{Op: "chmod", Path: path, Err: err}
		}
	case st.Mode&0o077 != 0:
		err = wide(path, os.FileMode(st.Mode&0o777))
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &Own{fd, path}, nil
}

// notOpened says what stands in the place of a directory that could not be opened.
func notOpened(at int, name, path string, err error) error {
	var st unix.Stat_t
	if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		switch {
		case st.Mode&unix.S_IFMT == unix.S_IFLNK:
			return &ForeignError{Path: path, Why: whyLink}
		case st.Mode&unix.S_IFMT != unix.S_IFDIR:
			return &ForeignError{Path: path, Why: whyNone}
		case int(st.Uid) != euid():
			return &ForeignError{Path: path, Why: whyForeign}
		}
	}
	return &os.PathError{Op: "open", Path: path, Err: err}
}

func retry(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// euid is the user of this process, which does not change.
var euid = sync.OnceValue(os.Geteuid)
