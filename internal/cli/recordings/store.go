// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recordings keeps recordings of terminal sessions, and output of runs, in directories of the user:
// it makes files for new ones, removes old ones, and lists them.
package recordings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/recording"
)

// A Store is a directory of recordings. It touches only files that are named like its own, and follows no
// symbolic links.
type Store struct {
	// Dir is made with mode 0700 if it is missing, and must belong to the user. Empty means recordings in the
	// state directory.
	Dir string
	// MaxAge is how long a recording is kept; 0 means without a limit.
	MaxAge time.Duration
	// MaxTotal is how many bytes all recordings have together; 0 means without a limit. The oldest ones go
	// first.
	MaxTotal int64

	outputs  bool // files are the output of runs, named by their IDs
	maxFiles int  // 0 means without a limit
}

// Outputs returns the Store of a directory for the output of runs: of so many of them, and so many bytes.
func Outputs(dir string, runs int, bytes int64) *Store {
	return &Store{Dir: dir, MaxTotal: bytes, outputs: true, maxFiles: runs}
}

const (
	suffix = ".cast"
	stamp  = "20060102T150405Z"
)

// open opens the directory.
func (s *Store) open() (*os.Root, error) {
	dir, err := s.Path()
	if err != nil {
		return nil, err
	}
	root, err := safefile.MakeDirs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot use the directory of recordings: %w", err)
	}
	return root, nil
}

// Path returns the directory.
func (s *Store) Path() (string, error) {
	if s.Dir != "" {
		return s.Dir, nil
	}
	state, err := dirs.Dir()
	return filepath.Join(state, "recordings"), err
}

// Create makes a file of mode 0600 for a new recording, after it has removed those that are too old or too
// much.
func (s *Store) Create() (*os.File, error) {
	root, err := s.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s.clean(root)
	const tries = 8
	for range tries {
		name := fmt.Sprintf("%s-%08x%s", time.Now().UTC().Format(stamp), rand.Uint32(), suffix)
		var f *os.File
		f, err = root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, err
}

// Keep writes the output of a run to a file of mode 0600, and removes what is too much then.
func (s *Store) Keep(run, text string) error {
	root, err := s.open()
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := root.OpenFile(run, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Close())
	if err != nil {
		_ = root.Remove(run) // else it is removed as the others are
	}
	s.clean(root)
	return err
}

// isOwn reports whether name is one that Create or Keep makes.
func (s *Store) isOwn(name string) bool {
	if s.outputs {
		return name != "" && strings.Trim(name, "0123456789abcdef") == ""
	}
	at, id, ok := strings.Cut(strings.TrimSuffix(name, suffix), "-")
	_, err := time.Parse(stamp, at)
	return ok && err == nil && len(id) == 8 && strings.Trim(id, "0123456789abcdef") == "" &&
		strings.HasSuffix(name, suffix)
}

// files lists the recordings, the one that was written last first.
func (s *Store) files(root *os.Root) ([]fs.FileInfo, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	var all []fs.FileInfo
	for _, name := range names {
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() && s.isOwn(name) {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(b.Name(), a.Name()))
	})
	return all, err
}

// clean removes recordings that are too old or too much. What cannot be removed stays.
func (s *Store) clean(root *os.Root) {
	all, _ := s.files(root)
	var sum int64
	for i, info := range all {
		sum += info.Size()
		if s.MaxAge > 0 && time.Since(info.ModTime()) > s.MaxAge || s.MaxTotal > 0 && sum > s.MaxTotal ||
			s.maxFiles > 0 && i >= s.maxFiles {
			_ = root.Remove(info.Name())
		}
	}
}

// An Entry is a recording in a list.
type Entry struct {
	Name    string           `json:"name"`
	Path    string           `json:"path"`
	Bytes   int64            `json:"bytes"`
	Ended   time.Time        `json:"ended"` // when it was written last
	Started time.Time        `json:"started"`
	Header  recording.Header `json:"-"` // zero where it cannot be read
	Command string           `json:"command"`
}

// List returns the recordings, the one that was written last first.
func (s *Store) List() ([]Entry, error) {
	root, err := s.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all, err := s.files(root)
	list := make([]Entry, 0, len(all))
	for _, info := range all {
		e := Entry{Name: info.Name(), Path: filepath.Join(root.Name(), info.Name()), Bytes: info.Size(),
			Ended: info.ModTime().UTC()}
		if f, err := safefile.Open(e.Path); err == nil {
			if r, err := recording.NewReader(f); err == nil {
				e.Header = r.Header()
				e.Started, e.Command = e.Header.Started.UTC(), e.Header.Command
			}
			_ = f.Close()
		}
		list = append(list, e)
	}
	return list, err
}

// Open opens a recording by its name.
func (s *Store) Open(name string) (*os.File, error) {
	dir, err := s.Path()
	if err == nil && !s.isOwn(name) {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	return safefile.Open(filepath.Join(dir, name))
}

// Remove removes a recording by its name.
func (s *Store) Remove(name string) error {
	if !s.isOwn(name) {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	root, err := s.open()
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Remove(name)
}

// New makes a file of mode 0600 at a path where there is nothing.
func New(path string) (*os.File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(filepath.Base(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}
