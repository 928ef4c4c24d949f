// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package gitpaths

import (
	"errors"
	"io/fs"
	"syscall"
)

// errNotFile and errTooBig are why readFile refuses.
var (
	errNotFile = errors.New("it is no regular file")
	errTooBig  = errors.New("it is too big")
)

// readFile returns the bytes of a regular file of at most limit bytes. It uses the
// system's calls alone: the poller of package os costs more than the small files
// here. A named pipe does not block it.
func readFile(path string, limit int64) ([]byte, error) {
	fd, err := retry(func() (int, error) {
		return syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(fd) }()
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, errNotFile
	}
	if st.Size > limit {
		return nil, errTooBig
	}
	text := make([]byte, 0, st.Size+1) // one more, so that the end is seen without growing
	for {
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
		n, err := retry(func() (int, error) { return syscall.Read(fd, text[len(text):cap(text)]) })
		if err != nil {
			return nil, err
		}
		// A regular file gives less than it is asked for at its end alone.
		room := cap(text) - len(text)
		if text = text[:len(text)+n]; int64(len(text)) > limit {
			return nil, errTooBig
		}
		if n < room {
			return text, nil
		}
	}
}

// retry calls again what a signal has interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// absent reports whether the error says that nothing has a name: also if one of the
// name's folders is a file, and if the name is longer than a name can be.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// lstat returns the type of what has the path, without permissions. The errors are
// the system's alone, and nothing is allocated but the path.
func lstat(path string) (fs.FileMode, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return 0, err
	}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return 0, nil
	case syscall.S_IFDIR:
		return fs.ModeDir, nil
	case syscall.S_IFLNK:
		return fs.ModeSymlink, nil
	}
	return fs.ModeIrregular, nil
}
