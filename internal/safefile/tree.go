// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// ErrLate says that the time for removing something was over.
var ErrLate = errors.New("there was no time to remove all of it")

// A ForeignError reports something that stands where a directory of sallyport's own is
// expected. Nothing was changed.
type ForeignError struct {
	Path string
	Why  string // such as "it is a symbolic link"
}

// Error returns one sentence with the path, the reason and the fix.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is not a directory of sallyport's own: %s; replace it by a directory of yours with mode 0700", text.Word(e.Path), e.Why)
}

// OpenTreePath opens the directory path. Links on the way to it are followed, for the way is the
// user's; path itself must be a directory of this user's with mode 0700, else the error is a
// [*ForeignError].
func OpenTreePath(path string) (*os.Root, error) {
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return OpenTree(parent, filepath.Base(path))
}

// CheckOwn returns nil if [OpenTreePath] would open the directory now. It opens nothing.
func CheckOwn(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if why := strange(info); why != "" {
		return &ForeignError{Path: path, Why: why}
	}
	if !closed(info) {
		return wide(path, info.Mode())
	}
	return nil
}

// MakeDirs is [OpenTreePath], and makes the directory and those on the way to it if they are
// missing. A directory of this user's that others can enter is closed to them.
func MakeDirs(path string) (*os.Root, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return MakeDir(parent, filepath.Base(path))
}

// OpenTree opens the directory name in parent, under the conditions of [OpenTreePath].
func OpenTree(parent *os.Root, name string) (*os.Root, error) { return openTree(parent, name, false) }

// MakeDir is [OpenTree], and makes the directory if it is missing. A directory of this user's that
// others can enter is closed to them.
func MakeDir(parent *os.Root, name string) (*os.Root, error) {
	if err := parent.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return openTree(parent, name, true)
}

// RemoveTreePath is [RemoveTree] by path. Links on the way to it are followed: it is for a path whose
// directories are all sallyport's own.
func RemoveTreePath(path string) error {
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()
	return RemoveTree(parent, filepath.Base(path))
}

func openTree(parent *os.Root, name string, narrow bool) (*os.Root, error) {
	named, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(parent.Name(), name)
	if why := strange(named); why != "" {
		return nil, &ForeignError{Path: path, Why: why}
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	switch {
	case err != nil:
	case !os.SameFile(named, info):
		err = &ForeignError{Path: path, Why: "it was replaced while it was opened"}
	case !closed(info) && narrow:
		err = root.Chmod(".", 0o700)
	case !closed(info):
		err = wide(path, info.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

func wide(path string, mode fs.FileMode) error {
	return &ForeignError{Path: path,
		Why: fmt.Sprintf("its mode is %04o, which lets others in", mode.Perm())}
}

// Why something is no directory of this user's.
const (
	whyLink    = "it is a symbolic link"
	whyNone    = "it is no directory"
	whyForeign = "it belongs to another user"
)

// strange returns why something is not a directory of this user's; empty if it is one.
func strange(info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return whyLink
	case !info.IsDir():
		return whyNone
	case IsForeign(info):
		return whyForeign
	}
	return ""
}
