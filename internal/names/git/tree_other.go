// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package git

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// A tree is a directory with paths below it.
type tree struct{ root string }

func openTree(path string) (tree, error) { return tree{path}, nil }

func (t tree) close() {}

// direct does not find out here.
func direct(string) (trail, bool) { return trail{}, false }

// stat returns the stamp of what has the path below the tree, and its type.
func (t tree) stat(path string) (stamp, fs.FileMode, error) {
	info, err := os.Lstat(filepath.Join(t.root, path))
	if err != nil {
		return stamp{}, 0, err
	}
	return stampOf(info), info.Mode().Type(), nil
}

// holdsNoFiles is not known here.
func (t tree) holdsNoFiles(string) bool { return false }

// keepsTimes is not known here.
func (t tree) keepsTimes(string) bool { return false }

// readlink returns the text of the symbolic link with the path below the tree.
func (t tree) readlink(path string) (string, error) { return os.Readlink(filepath.Join(t.root, path)) }

// open opens the directory with the path below the tree.
func (t tree) open(path string) (*os.File, error) { return os.Open(filepath.Join(t.root, path)) }

// openUp gives the owner of a directory the rights to it that a command took away, and reports
// whether it did. No link leads out of the directory above it.
func openUp(dir string) bool {
	above, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return false
	}
	defer above.Close()
	info, err := above.Lstat(filepath.Base(dir))
	return err == nil && info.IsDir() && above.Chmod(info.Name(), info.Mode().Perm()|0o700) == nil
}

// stampOf returns a stamp that is never trusted: without the time of the last
// change, which programs cannot set, a directory could change unseen.
func stampOf(info fs.FileInfo) stamp {
	return stamp{modified: info.ModTime().UnixNano(), changed: math.MaxInt64, size: info.Size()}
}

// lstatStamp returns the stamp of what has the path.
func lstatStamp(path string) (stamp, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info), nil
}

// manyNames reports whether a file has more than one name, which is not known here.
func manyNames(string) bool { return false }

// enterable returns false: on systems without mounts names are judged when they are opened.
func (tree) enterable(string) bool { return false }
