// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// The limits of a [Store] that names none, in bytes.
const (
	DefaultPerFile = 64 << 20
	DefaultTotal   = 1 << 30
)

// firstReserve is what a file takes of the limit at first, in bytes. Then it doubles:
// a full file has looked at the folder ten times.
const firstReserve = 256 << 10

// maxTries bounds how often a new file may be taken for one that was left behind
// before it is locked.
const maxTries = 8

// ErrClosed says that the store or the file is closed.
var ErrClosed = errors.New("spill: closed")

// ErrFull says that all files of the folder are together as long as they may be and
// that none of them has ended.
var ErrFull = errors.New("spill: the limit of all spill files together is reached; end or remove other sessions, or raise the limit")

// A Store is a folder of spill files. Its exported fields must not change after the
// first Create. The zero Store has no folder and creates nothing. It must not be
// copied, and is safe for concurrent use.
type Store struct {
	// Dir is the folder: made with mode 0700 if it is not there, with the folders
	// around it. It must belong to the user and hold nothing but spill files. Empty is
	// an error.
	Dir string
	// PerFile bounds one file, in bytes. 0 is [DefaultPerFile]; negative keeps nothing.
	PerFile int64
	// Total bounds all files in the folder, those of other processes among them, in
	// bytes. 0 is [DefaultTotal]; negative keeps nothing.
	Total int64

	mu     sync.Mutex
	root   *os.Root // nil before the first use
	closed bool
	files  map[string]*File
	pool   sync.Pool // *[gatherSize]byte
}

// owner is what the lock of a file says.
type owner uint8

const (
	ownerWrites owner = iota // it is being written, or nobody can tell
	ownerDone                // it has ended, its owner may still read it
	ownerGone                // its owner has left it
)

func (s *Store) perFile() int64 { return limit(s.PerFile, DefaultPerFile) }

func (s *Store) total() int64 { return limit(s.Total, DefaultTotal) }

func limit(n, byDefault int64) int64 {
	if n == 0 {
		return byDefault
	}
	return max(n, 0)
}

// Create makes the file name with mode 0600, open and empty. A name consists of
// letters, digits, '-', '_' and '.', does not begin with a dot, and has at most 128
// bytes; one that is there already is an error. The first call removes what crashed
// processes have left. The caller removes the file, or closes the store.
func (s *Store) Create(name string) (*File, error) {
	if !validName(name) {
		return nil, fmt.Errorf("spill: %q cannot be the name of a spill file; use letters, digits, '-', '_' and '.'", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	f, err := s.create(name)
	if err != nil {
		return nil, fmt.Errorf("spill: %w", err)
	}
	n := uint64(s.perFile())
	file := &File{store: s, name: name, f: f, headCap: n / 2, ringCap: n - n/2, n: n}
	if s.files == nil {
		s.files = make(map[string]*File)
	}
	s.files[name] = file
	return file, nil
}

// validName reports whether a file may have the name.
func validName(name string) bool {
	if name == "" || len(name) > 128 || name[0] == '.' {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// create makes and locks a file. Between the two, another process may take it for one
// that was left; then it is made again.
func (s *Store) create(name string) (*os.File, error) {
	for range maxTries {
		f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lockExclusive(f); err != nil {
			f.Close()
			return nil, errors.Join(&fs.PathError{Op: "lock", Path: f.Name(), Err: err}, s.root.Remove(name))
		}
		if s.linked(f, name) {
			return f, nil
		}
		f.Close()
	}
	return nil, &fs.PathError{Op: "create", Path: name, Err: errors.New("other processes remove it")}
}

// linked reports whether name still means the open file.
func (s *Store) linked(f *os.File, name string) bool {
	there, err := s.root.Lstat(name)
	if err != nil {
		return false
	}
	open, err := f.Stat()
	return err == nil && os.SameFile(there, open)
}

// open makes and opens the folder, once.
func (s *Store) open() error {
	if s.closed {
		return ErrClosed
	}
	if s.root != nil {
		return nil
	}
	if s.Dir == "" {
		return errors.New("spill: no folder is named")
	}
	root, err := openFolder(s.Dir)
	if err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	s.root = root
	for _, e := range s.list() {
		s.reclaim(e.name, ownerGone)
	}
	return nil
}

// openFolder makes a folder that only this user can enter, or takes the one that is
// there if it is of that kind: in a shared folder somebody else could have made it
// first.
func openFolder(dir string) (*os.Root, error) {
	// The way there is the user's own, like the rest of the home.
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	// What is there already is checked below.
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	named, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	switch {
	case err != nil:
	case !os.SameFile(named, info) || foreign(info):
		err = fmt.Errorf("%s is not a folder of this user", dir)
	case info.Mode().Perm()&0o077 != 0:
		err = root.Chmod(".", 0o700)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// An entry is a file in the folder.
type entry struct {
	name string
	info fs.FileInfo
}

// list returns the regular files in the folder, the one that was written first before
// the others. What cannot be looked at is in nobody's way.
func (s *Store) list() []entry {
	dir, err := s.root.Open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	list := make([]entry, 0, len(names))
	for _, name := range names {
		if info, err := s.root.Lstat(name); err == nil && info.Mode().IsRegular() && validName(name) {
			list = append(list, entry{name, info})
		}
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(a.info.ModTime().Compare(b.info.ModTime()), cmp.Compare(a.name, b.name))
	})
	return list
}

// reclaim removes a file whose owner is at least as far as given, and reports whether
// it did. Whoever still reads it finds nothing there.
func (s *Store) reclaim(name string, atLeast owner) bool {
	if own := s.files[name]; own != nil {
		if atLeast > ownerDone || !own.hasEnded() {
			return false
		}
		if own.discard() != nil {
			return false
		}
		delete(s.files, name)
		return true
	}
	f, err := s.root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if probe(f) < atLeast || !s.linked(f, name) {
		return false
	}
	// Its owner may have it open: the room is free when it is empty.
	if f.Truncate(0) != nil {
		return false
	}
	return s.root.Remove(name) == nil
}

// reserve gives the file, which has had bytes of the limit, as many more as there are
// up to want. It returns how many it has now.
func (s *Store) reserve(file *File, had, want int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return had, ErrClosed
	}
	// First taken, then counted: of two processes that do so at once, at least one
	// sees the other.
	if err := file.f.Truncate(want); err != nil {
		return had, err
	}
	sum := want
	list := slices.DeleteFunc(s.list(), func(e entry) bool { return e.name == file.name })
	for _, e := range list {
		sum += e.info.Size()
	}
	for _, e := range list {
		if sum <= s.total() {
			break
		}
		if s.reclaim(e.name, ownerDone) {
			sum -= e.info.Size()
		}
	}
	if sum <= s.total() {
		return want, nil
	}
	got := max(had, want-(sum-s.total()))
	return got, file.f.Truncate(got)
}

// Close removes the files of this Store that are still there; their bytes are missing
// from then on. Files of other processes stay, and so does the folder. A Store that
// was never used has nothing to close. After Close nothing can be created.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.discard())
	}
	s.files = nil
	if s.root != nil {
		errs = append(errs, s.root.Close())
		s.root = nil
	}
	return errors.Join(errs...)
}
