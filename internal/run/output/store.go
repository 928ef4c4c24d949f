// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// DefaultTotal is the limit of all files of a [Store] that names none, in bytes.
const DefaultTotal = 1 << 30

// firstReserve is what a file takes of the limit at first, in bytes. Then it doubles: a
// full file of 64 MiB has looked at the directory ten times.
const firstReserve = 256 << 10

// ErrClosed says that the store or the file is closed.
var ErrClosed = errors.New("the spill file is closed")

// ErrFull says that all spill files have reached their common limit and none of them has
// ended.
var ErrFull = errors.New("the limit of all spill files together is reached; close sessions that are not needed")

// A Store is a directory of spill files. Several processes may use one directory.
//
// The size of a file is its share of the common limit, and a file is enlarged before the
// others are counted, so that no lock is needed for the sum. A lock on each file says
// whether it is being written (exclusive), has ended (shared) or was left by a process
// that crashed (none). Files that were left are removed when a process creates its first
// one. Ended files are removed, oldest first, when there is no room for what is being
// written.
//
// The exported fields must not change after the first Create. A Store follows no symbolic
// links, touches only files that are named like its own, must not be copied, and is safe
// for concurrent use.
type Store struct {
	// Dir is the directory. It is made with mode 0700, with the directories around it,
	// and must belong to the user. Empty is an error.
	Dir string
	// Total limits all files in the directory, in bytes. 0 means [DefaultTotal].
	Total int64
	// Own says that this Store has the directory alone, and its files only the newest bytes of their
	// outputs. They have no name, where the system can do that, so that they are gone with this process
	// however it ends, and none is removed for another one.
	Own bool

	mu     sync.Mutex
	root   *os.Root // nil before the first use
	closed bool
	files  map[*File]int64 // what each has of the limit
}

// An owner is what the lock of a file says about the process that made it.
type owner uint8

const (
	ownerWrites owner = iota // it writes the file, or that is not known
	ownerDone                // it has ended the file and may still read it
	ownerGone                // it has crashed
)

// Create makes a new file of at most size bytes, with mode 0600. The first call removes
// what crashed processes have left. The caller removes the file, or closes the store.
func (s *Store) Create(size int64) (*File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	name, f, err := s.create()
	if err != nil {
		return nil, fmt.Errorf("cannot create a spill file: %w", err)
	}
	n := uint64(max(size, 0))
	file := &File{store: s, name: name, f: f, size: n, headCap: n / 2}
	if s.Own {
		file.headCap = 0
		_ = s.root.Remove(name) // Windows does that at the end
	}
	file.ringCap = n - file.headCap
	if s.files == nil {
		s.files = make(map[*File]int64)
	}
	s.files[file] = 0
	return file, nil
}

// create makes and locks a file. Between the two, another process may take the file for
// one that was left; then another one is made.
func (s *Store) create() (name string, f *os.File, err error) {
	const tries = 8
	for range tries {
		name = fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
		f, err = s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return "", nil, err
		}
		if err = lockExclusive(f); err != nil {
			return "", nil, errors.Join(&fs.PathError{Op: "lock", Path: f.Name(), Err: err}, f.Close(),
				s.root.Remove(name))
		}
		if s.linked(f, name) {
			return name, f, nil
		}
		f.Close()
	}
	return "", nil, errors.New("other processes remove it")
}

// fileName reports whether name is one that create makes.
func fileName(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// linked reports whether name still means the open file.
func (s *Store) linked(f *os.File, name string) bool {
	named, err := s.root.Lstat(name)
	if err != nil {
		return false
	}
	open, err := f.Stat()
	return err == nil && os.SameFile(named, open)
}

// open makes and opens the directory, once.
func (s *Store) open() error {
	if s.closed {
		return ErrClosed
	}
	if s.root != nil {
		return nil
	}
	if s.Dir == "" {
		return errors.New("no directory for spill files")
	}
	root, err := safefile.MakeDirs(s.Dir)
	if err != nil {
		return fmt.Errorf("cannot use the directory of spill files: %w", err)
	}
	s.root = root
	for _, e := range s.list() {
		s.reclaim(e.Name(), ownerGone)
	}
	return nil
}

// list returns the files in the directory, the one that was written first before the
// others. A file that cannot be looked at is left out.
func (s *Store) list() []fs.FileInfo {
	dir, err := s.root.Open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var list []fs.FileInfo
	for _, name := range names {
		if info, err := s.root.Lstat(name); err == nil && info.Mode().IsRegular() && fileName(name) {
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	return list
}

// reclaim removes a file if its owner has come at least so far, and reports whether it
// did. A process that still reads the file finds it empty.
func (s *Store) reclaim(name string, atLeast owner) bool {
	f, err := s.root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	// Its owner may have it open: only an empty file frees the room.
	return probe(f) >= atLeast && s.linked(f, name) && f.Truncate(0) == nil && s.root.Remove(name) == nil
}

// reserve gives the file, which has had bytes of the limit, as many more as there are up
// to want. It returns how many it has now.
func (s *Store) reserve(file *File, had, want int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return had, ErrClosed
	}
	// Of two processes that first take and then count, at least one sees the other.
	if err := file.f.Truncate(want); err != nil {
		return had, err
	}
	over := want - cmp.Or(s.Total, DefaultTotal)
	var others []fs.FileInfo
	if s.Own {
		for f, has := range s.files {
			if f != file {
				over += has
			}
		}
	} else {
		others = slices.DeleteFunc(s.list(), func(e fs.FileInfo) bool { return e.Name() == file.name })
	}
	for _, e := range others {
		over += e.Size()
	}
	for _, e := range others {
		if over > 0 && s.reclaim(e.Name(), ownerDone) {
			over -= e.Size()
		}
	}
	got := max(had, want-max(over, 0))
	s.files[file] = got
	if got == want {
		return want, nil
	}
	return got, file.f.Truncate(got)
}

// Close removes the files of this Store that are still there; their bytes are missing
// from then on. Files of other processes stay, and so does the directory. Nothing can be
// created after it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for f := range s.files {
		errs = append(errs, f.discard())
	}
	s.files = nil
	if s.root != nil {
		errs = append(errs, s.root.Close())
		s.root = nil
	}
	return errors.Join(errs...)
}
