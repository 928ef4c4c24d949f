// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree removes directories that a command has filled.
//
// It refuses to follow links, and never waits for processes that still write.
package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Remove removes a directory as os.RemoveAll does, also if directories in it lack
// permissions. It does not follow links.
func Remove(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	openUp(root, ".")
	root.Close()
	return os.RemoveAll(dir)
}

// openUp gives the owner all rights to the directories of a tree. RemoveAll reports a
// directory that it could not change.
func openUp(root *os.Root, name string) {
	_ = root.Chmod(name, 0o700)
	f, err := root.Open(name)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		if e.IsDir() {
			openUp(root, filepath.Join(name, e.Name()))
		}
	}
}
