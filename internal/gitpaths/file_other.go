// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package gitpaths

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// errNotFile and errTooBig are why readFile refuses.
var (
	errNotFile = errors.New("it is no regular file")
	errTooBig  = errors.New("it is too big")
)

// readFile returns the bytes of a regular file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotFile
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, errTooBig
	}
	return text, err
}

// absent reports whether the error says that nothing has a name.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// lstat returns the type of what has the path, without permissions.
func lstat(path string) (fs.FileMode, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode().Type(), nil
}
