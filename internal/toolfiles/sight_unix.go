// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package toolfiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	// MaxListed is how many files of a new directory are listed.
	MaxListed = 5
	// maxRead is how many names of a new directory and below are read to list them.
	maxRead = 256
)

// A Sight is what was at one name at one moment.
type Sight struct {
	Name
	Path string
	Stat *syscall.Stat_t // nil: nothing was there
}

// Look looks at every name of the table in a directory, without following links. The error
// says which name could not be looked at.
func Look(root string) ([]Sight, error) {
	out := make([]Sight, 0, len(names))
	for _, n := range names {
		s := Sight{Name: n, Path: filepath.Join(root, n.Name)}
		var st syscall.Stat_t
		switch err := syscall.Lstat(s.Path, &st); {
		case err == nil:
			found := st
			s.Stat = &found
		case !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR):
			return nil, &fs.PathError{Op: "lstat", Path: s.Path, Err: err}
		}
		out = append(out, s)
	}
	return out, nil
}

// New returns what is at the name now and was not there: the name itself or, of a directory
// with files, the first of them, and how many more files were seen in it. Another file or
// directory in the place of the old one is new. Nil means that nothing is.
func (s *Sight) New() (files []string, more int) {
	var now syscall.Stat_t
	if syscall.Lstat(s.Path, &now) != nil || s.Stat != nil && s.Stat.Dev == now.Dev && s.Stat.Ino == now.Ino {
		return nil, 0
	}
	if now.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		files = list(filepath.Dir(s.Path), s.Name.Name)
	}
	if len(files) == 0 {
		return []string{s.Path}, 0
	}
	kept := files[:min(len(files), MaxListed)]
	return kept, len(files) - len(kept)
}

// list returns the files in a directory below root and in the directories in it, as far as
// maxRead names go; those higher up first. Other programs may exchange directories for links
// meanwhile, so nothing outside of root is opened, and nothing is waited for.
func list(root, dir string) []string {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil // it is gone
	}
	defer r.Close()
	var files []string
	left := maxRead
	for dirs := []string{dir}; len(dirs) > 0 && left > 0; dirs = dirs[1:] {
		f, err := r.OpenFile(dirs[0], os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		entries, _ := f.ReadDir(left) // what was read before an error counts
		f.Close()
		left -= len(entries)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		for _, e := range entries {
			if at := filepath.Join(dirs[0], e.Name()); e.IsDir() {
				dirs = append(dirs, at)
			} else {
				files = append(files, filepath.Join(root, at))
			}
		}
	}
	return files
}
