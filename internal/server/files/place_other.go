// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package files

import (
	"context"
	"io/fs"
	"os"
	"syscall"
)

// openDirectory are the flags that open a directory, and wait for nothing.
const openDirectory = syscall.O_NONBLOCK

// A place is a target that was reached.
type place struct{ name string }

func (p place) close() {}

// locate reaches a target. One with NoFollow cannot be reached safely here.
func locate(t Target, _ bool) (place, error) {
	if t.NoFollow {
		return place{}, invalidf("followSymlinks false is not supported on this system; leave it out")
	}
	return place{t.Path}, nil
}

// openPlain opens an existing regular file with flags. What takes its place in the same moment
// is opened, and not used.
func openPlain(p place, t Target, flags int) (*os.File, error) {
	info, err := os.Stat(p.name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: t.Path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return nil, notPlain(t.Path)
	}
	f, err := os.OpenFile(p.name, flags|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, notPlain(t.Path)
	}
	return f, nil
}

// chmodPlain sets the permissions of a regular file or a directory.
func chmodPlain(p place, t Target, mode fs.FileMode) error {
	info, err := os.Stat(p.name)
	switch {
	case err != nil:
		return err
	case !info.IsDir() && !info.Mode().IsRegular():
		return notPlain(t.Path)
	}
	return os.Chmod(p.name, mode)
}

// renameNew renames without replacing. What appears between the two calls is replaced.
func renameNew(from, to string) error {
	_, err := os.Lstat(to)
	switch {
	case err == nil:
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EEXIST}
	case !os.IsNotExist(err):
		return err
	}
	return os.Rename(from, to)
}

// createFlags are the flags that create a file at a place.
func createFlags(Target) int { return os.O_CREATE | syscall.O_NONBLOCK }

// keepOwner leaves the owner of a file that replaces another one: it is this user.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

// copyContent copies all of a file.
func copyContent(ctx context.Context, out, in *os.File, _ fs.FileInfo) error {
	return copyAll(ctx, out, in)
}
