// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sallyport-dev/sallyport/internal/tree"

	"golang.org/x/sys/unix"
)

// The layout below the state folder:
//
//	caches/HASH/workspace       the workspace's path, for people
//	caches/HASH/slot-N/         flocked by the run that uses it
//	caches/HASH/slot-N/CACHE/upper, work
//	caches/HASH/plain/CACHE     where overlays cannot be had; flocked shared
//
// HASH is of the workspace's path, so nobody gets another workspace's layers.
const (
	cachesFolder  = "caches"
	workspaceFile = "workspace"
	slotPrefix    = "slot-"
	plainFolder   = "plain"
	upperFolder   = "upper"
	workFolder    = "work"
)

const (
	// maxSlots bounds how many runs of one workspace have overlays at once.
	maxSlots = 64
	// maxTries bounds how often a race against somebody who clears is lost.
	maxTries = 8
)

// A Slot is the private folders of one run. Nobody else gets the layers in it
// until it is released.
type Slot struct {
	dir   string // empty when all slots were taken
	lock  *os.File
	plain string
	used  *os.File // of plain, shared
}

// Layers are the two folders of ours that an overlay needs.
type Layers struct {
	Upper, Work string
}

// Acquire takes the first slot of a workspace that no run holds, in the state
// folder state, which must exist and belong to the user. It never waits for a run.
// The slot is held until Release, and longer by whoever inherits its Lock.
func Acquire(state, workspace string) (*Slot, error) {
	base := filepath.Join(state, cachesFolder, hash(workspace))
	s, err := acquire(base, workspace)
	for range maxTries {
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		s, err = acquire(base, workspace) // the folder was cleared away just now
	}
	if err != nil {
		return nil, fmt.Errorf("caches: %w", err)
	}
	return s, nil
}

func acquire(base, workspace string) (*Slot, error) {
	if err := makeBase(base, workspace); err != nil {
		return nil, err
	}
	s := &Slot{plain: filepath.Join(base, plainFolder)}
	for n := range maxSlots {
		dir := filepath.Join(base, slotPrefix+strconv.Itoa(n))
		lock, err := lockFolder(dir, unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.dir, s.lock = dir, lock
		break
	}
	return s, nil
}

// makeBase makes the folder of a workspace with the file that says whose it is.
func makeBase(base, workspace string) error {
	name := filepath.Join(base, workspaceFile)
	if exists(name) {
		return nil
	}
	for _, d := range []string{filepath.Dir(base), base} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	// Whoever is first writes it whole; who is second has nothing to add.
	f, err := os.CreateTemp(base, workspaceFile+".")
	if err != nil {
		return err
	}
	_, err = f.WriteString(workspace)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// lockFolder makes a folder if it is missing and locks it. A
// folder that was removed between the two is made anew: a lock on one that has no
// name any more would guard nothing.
func lockFolder(dir string, how int) (*os.File, error) {
	var last error
	for range maxTries {
		f, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
			f, err = os.Open(dir)
		}
		if err != nil {
			last = err
			continue
		}
		if err := flock(f, how); err != nil {
			f.Close()
			return nil, err
		}
		if sameFolder(f, dir) {
			return f, nil
		}
		f.Close()
		last = fs.ErrNotExist
	}
	return nil, last
}

func sameFolder(f *os.File, dir string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(dir)
	return err == nil && os.SameFile(a, b)
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

// Lock is the open folder whose lock holds the slot, or nil when all slots were
// taken. It stays the slot's.
func (s *Slot) Lock() *os.File { return s.lock }

// Layers makes the folders for the overlay of one cache. It reports false when
// all slots were taken.
func (s *Slot) Layers(cache string) (Layers, bool, error) {
	if s.lock == nil {
		return Layers{}, false, nil
	}
	dir := filepath.Join(s.dir, cache)
	l := Layers{Upper: filepath.Join(dir, upperFolder), Work: filepath.Join(dir, workFolder)}
	if err := makeFolders(dir, l.Upper, l.Work); err != nil {
		return Layers{}, false, err
	}
	return l, true, unmark(l.Work)
}

// unmark removes the mark of an overlay that nothing was forced to the disk for:
// the kernel takes it for a sign that the upper folder may lack what was written
// last before a crash. So may every cache; tools that build one do not wait for the
// disk either, and check what they find. Its folders have mode 000, and the kernel
// makes them anew.
func unmark(work string) error {
	inner := filepath.Join(work, "work")
	mark := filepath.Join(inner, "incompat")
	_ = unix.Unlink(filepath.Join(mark, "volatile", "dirty"))
	_ = unix.Rmdir(filepath.Join(mark, "volatile"))
	if err := unix.Rmdir(mark); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// Not the mark as it is known, or, for an ordinary user, a folder that is shut.
	if err := os.Chmod(inner, 0o700); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("caches: %w", err)
	}
	if err := tree.Remove(inner); err != nil {
		return fmt.Errorf("caches: %w", err)
	}
	return nil
}

// Plain makes the folder that stands in for a cache where there is no overlay.
// All runs of a workspace share it, as they would share the host's. It waits for
// a [Clear] that is removing it.
func (s *Slot) Plain(cache string) (string, error) {
	if s.used == nil {
		used, err := lockFolder(s.plain, unix.LOCK_SH)
		if err != nil {
			return "", fmt.Errorf("caches: %w", err)
		}
		s.used = used
	}
	dir := filepath.Join(s.plain, cache)
	return dir, makeFolders(dir)
}

// makeFolders makes folders that may be there already.
func makeFolders(dirs ...string) error {
	if exists(dirs[len(dirs)-1]) {
		return nil
	}
	for _, d := range dirs {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("caches: %w", err)
		}
	}
	return nil
}

// Release gives the slot back. Nothing may use its folders any more. A nil Slot is
// none, and it may be called twice.
func (s *Slot) Release() {
	if s == nil {
		return
	}
	for _, f := range []*os.File{s.lock, s.used} {
		if f != nil {
			// Unlocked and not only closed: a child that is being started at this
			// moment has a copy of every descriptor.
			_ = flock(f, unix.LOCK_UN)
			f.Close()
		}
	}
	s.lock, s.used = nil, nil
}

func hash(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return hex.EncodeToString(sum[:12])
}
