// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/plainfile"
)

// errTooBig is why ReadFile refuses a regular file.
var errTooBig = errors.New("it is too big")

// ReadFile returns the content of a regular file of at most limit bytes. Nothing else is
// opened.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, errTooBig
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = errTooBig
	}
	return text, err
}

// absent reports whether the error says that nothing has a name: also if one of the
// name's directories is a file, and if the name is longer than a name can be.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// lstat returns the type of what has the path, without permissions.
func lstat(path string) (fs.FileMode, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode().Type(), nil
}

// exists reports whether something has the path. What cannot be looked at exists.
func exists(path string) bool {
	_, err := lstat(path)
	return err == nil || !absent(err)
}

func isLink(path string) bool {
	mode, err := lstat(path)
	return err == nil && mode == fs.ModeSymlink
}

// cause returns the system's error without the path, which messages name anyway.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// readDir calls yield for the entries of a directory until that returns false.
func readDir(f *os.File, yield func(fs.DirEntry) bool) error {
	for {
		entries, err := f.ReadDir(256)
		for _, entry := range entries {
			if !yield(entry) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// entries returns the entries of a directory, sorted by name. A directory that
// cannot be read has none for git either.
func entries(path string) []fs.DirEntry {
	list, _ := os.ReadDir(path)
	return list
}
