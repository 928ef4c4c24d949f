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
	"sync"

	"github.com/sallyport-dev/sallyport/internal/linux/layers"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"

	"golang.org/x/sys/unix"
)

// The layout below the state directory:
//
//	caches/HASH/workspace            path of the workspace, for people
//	caches/HASH/CLASS-slot-N/        locked by the run that uses it
//	caches/HASH/CLASS-slot-N/CACHE/upper, work
//	caches/HASH/CLASS-plain/CACHE    for caches without overlay; shared lock
//	caches/HASH/once-N/CACHE/...     the same for a run that may write nothing; removed after it
//	caches/HASH/shown                shared lock of runs that show layers of other classes
//
// HASH is of the workspace's path, so that no run gets another workspace's layers.
const (
	cachesDir     = "caches"
	workspaceFile = "workspace"
	slotPrefix    = "slot-"
	plainDir      = "plain"
	shownDir      = "shown"
)

const (
	// maxSlots bounds how many runs of one workspace have overlays at once.
	maxSlots = 64
	// maxTries bounds how often Clear may remove a directory before it is locked.
	maxTries = 8
)

// A slot is the private directories of one run. No other run gets its layers until
// it is released and no process holds lock open.
type slot struct {
	base      string // directory of the workspace
	workspace string
	class     class
	lock      *os.File // slot-N or once-N; nil if all slots were taken
	used      *os.File // plain; nil before private
	shown     *os.File // nil without layers of other classes
	refs      int      // Layers that have it, beside the first; guarded by sharing
	mounted   bool     // its overlays are mounted, and stay so

	lowers map[string][]plan.Spot // by cache: see lower; guarded by sharing
}

// errAllTaken is why a run that may write nothing gets no layers.
var errAllTaken = fmt.Errorf("%d commands that may not write run in the workspace; wait until one has ended", maxSlots)

// acquire takes the first free slot of a workspace and class in the state directory, which
// must exist and belong to the user. It does not wait.
func acquire(state, workspace string, c class) (*slot, error) {
	s := &slot{base: filepath.Join(state, cachesDir, hash(workspace)), workspace: workspace, class: c}
	for n := range maxSlots {
		lock, err := s.lockDir(c.slotName(n), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.lock = lock
		break
	}
	if c.writes {
		return s, nil
	}
	if s.lock == nil {
		return nil, errAllTaken
	}
	if err := empty(s.lock); err != nil { // what a run left that was killed
		s.release()
		return nil, err
	}
	return s, nil
}

// lockDir makes a directory of the workspace if it is missing, and locks it. It
// tries again if [Clear] removes the directory meanwhile: a lock on a directory
// without a name protects nothing.
func (s *slot) lockDir(name string, how int) (*os.File, error) {
	var err error
	for range maxTries {
		var f *os.File
		if err = s.makeBase(); err == nil {
			err = layers.MakeDirs(filepath.Join(s.base, name))
		}
		if err == nil {
			f, err = layers.OpenLocked(filepath.Join(s.base, name), how)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, err
}

// makeBase makes the directory of the workspace with the file that names it.
func (s *slot) makeBase() error {
	name := filepath.Join(s.base, workspaceFile)
	if exists(name) {
		return nil
	}
	if err := layers.MakeDirs(filepath.Dir(s.base), s.base); err != nil {
		return err
	}
	// It is renamed so that a reader never sees a part of it.
	f, err := os.CreateTemp(s.base, workspaceFile+".")
	if err != nil {
		return err
	}
	_, err = f.WriteString(s.workspace)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// layers makes the two directories that the overlay of one cache needs. Every cache may lack what was written
// last before a crash of the machine; tools that build one do not wait for the disk either, and verify what
// they find.
func (s *slot) layers(cache string) (upper, work string, err error) {
	upper, work, err = layers.Make(filepath.Join(s.lock.Name(), cache))
	if err == nil && !s.mounted {
		err = layers.Unmark(work)
	}
	return upper, work, err
}

// private makes the directory that replaces a cache without an overlay. All runs of
// a workspace and class share it, as they would share the host's. It waits for a [Clear]
// that removes it at the moment.
func (s *slot) private(cache string) (string, error) {
	if !s.class.writes {
		dir := filepath.Join(s.lock.Name(), cache)
		return filepath.Join(dir, plainDir), layers.MakeDirs(dir, filepath.Join(dir, plainDir))
	}
	if s.used == nil {
		var err error
		if s.used, err = s.lockDir(s.class.plainName(), unix.LOCK_SH); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(s.used.Name(), cache)
	return dir, layers.MakeDirs(dir)
}

// sharing guards how many Layers have a slot.
var sharing sync.Mutex

// release gives the slot back, when all have that have it. It may be called twice by the last.
func (s *slot) release() {
	sharing.Lock()
	defer sharing.Unlock()
	if s.refs--; s.refs >= 0 {
		return
	}
	if s.lock != nil && !s.class.writes {
		_ = empty(s.lock) // what stays is removed before the directory is used again
	}
	for _, f := range []*os.File{s.lock, s.used, s.shown} {
		layers.Unlock(f)
	}
	s.lock, s.used, s.shown = nil, nil, nil
}

func hash(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return hex.EncodeToString(sum[:12])
}
