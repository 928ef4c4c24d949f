// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// errTooBig is why ReadFile refuses a regular file.
var errTooBig = errors.New("it is too big")

// ReadFile returns the content of a regular file of at most limit bytes. Nothing else is
// opened.
func ReadFile(path string, limit int64) ([]byte, error) {
	text, more, err := safefile.Read(path, limit)
	if err == nil && more {
		err = errTooBig
	}
	return text, err
}

// absent reports whether the error says that nothing has a name: also if one of the
// name's directories is a file, and if the name is longer than a name can be.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ENAMETOOLONG)
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

// entries returns the entries of a directory, sorted by name, as far as they can be read. Where
// an entry that is not seen would open something, listed tells.
func entries(path string) []fs.DirEntry {
	all, _ := listed(path)
	return all
}

// listed returns the entries of a directory, sorted by name; none of what is no directory.
func listed(path string) ([]fs.DirEntry, error) {
	list, err := os.ReadDir(path)
	if err != nil && absent(err) {
		return nil, nil
	}
	return list, err
}

// Unreadable returns the path of what exists and could not be read, and why, by an error of this
// package: what is in it, and so what git obeys because of it, is not known. The path is empty
// where there is nothing of the kind, as for a file that was read and git cannot understand.
func Unreadable(err error) (path string, why error) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			if path, why = Unreadable(e); path != "" {
				return path, why
			}
		}
		return "", nil
	}
	switch e := err.(type) { //nolint:errorlint // the errors are joined, not wrapped
	case *ConfigError:
		path, why = e.Path, e.Err
	case *LinkError:
		path, why = e.Path, e.Err
	case *IndexError:
		path, why = e.Path, e.Err
	}
	if why == nil || errors.Is(why, safefile.ErrNotPlain) || errors.Is(why, errTooManyLinks) {
		return "", nil
	}
	return path, why
}
