// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree removes what commands leave in folders of ours.
//
// It refuses to follow links, and it never waits for processes that still write.
package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Remove removes a folder that a command has filled, as os.RemoveAll does. Folders without
// permissions are opened up first; links are never followed.
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

// openUp gives the owner all rights to the folders of a tree. A folder that
// resists is found again by RemoveAll, which reports it.
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
