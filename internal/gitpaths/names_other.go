// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package gitpaths

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"
)

// A rootHandle is a folder with paths below it.
type rootHandle struct{ root string }

func openRoot(path string) (rootHandle, error) { return rootHandle{path}, nil }

// openPlain refuses: what it would be for is not believed here.
func openPlain(string) (rootHandle, error) { return rootHandle{}, errors.ErrUnsupported }

func (h rootHandle) close() {}

// stat returns the stamp of what has the relative path, and whether it is a folder.
func (h rootHandle) stat(path string) (stamp, bool, error) {
	info, err := os.Lstat(filepath.Join(h.root, path))
	if err != nil {
		return stamp{}, false, err
	}
	return stampOf(info), info.IsDir(), nil
}

// read calls yield for the names in the folder with the relative path, until that
// returns false. The stamp is from before; it is zero if there is no such folder.
func (h rootHandle) read(path string, yield func(name []byte, kind entryKind) bool) (stamp, error) {
	st, isFolder, err := h.stat(path)
	if err != nil {
		return stamp{}, err
	}
	if !isFolder {
		return stamp{}, fs.ErrNotExist
	}
	return st, readFolder(filepath.Join(h.root, path), yield)
}

// readFolder calls yield for the names in a folder, until that returns false.
func readFolder(path string, yield func(name []byte, kind entryKind) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(1024)
		for _, entry := range entries {
			kind := kindFile
			switch {
			case entry.IsDir():
				kind = kindFolder
			case entry.Type()&fs.ModeSymlink != 0:
				kind = kindLink
			}
			if !yield([]byte(entry.Name()), kind) {
				return nil
			}
		}
		if err != nil || len(entries) == 0 {
			if errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil // the end, or what git cannot read either
		}
	}
}

// stampOf returns a stamp that is never believed: without the time of the last
// change, which programs cannot set, a folder could change unseen.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{modified: info.ModTime().UnixNano(), changed: math.MaxInt64}
	if info.Mode().IsRegular() {
		s.size = info.Size()
	}
	return s
}

// lstatStamp returns the stamp of what has the path.
func lstatStamp(path string) (stamp, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info), nil
}

// nowStamp returns the time in the unit of stamps.
func nowStamp() int64 { return time.Now().UnixNano() }
