// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/tree"

	"golang.org/x/sys/unix"
)

// List returns the private layers in a state directory, sorted by workspace and
// cache, except for those that are empty and not in use. It reads every directory of
// them.
func List(state string) ([]Entry, error) {
	type key struct{ workspace, cache string }
	found := map[key]Entry{}
	err := eachBase(state, func(base, workspace string) error {
		return eachSlot(base, func(dir string) error {
			busy := inUse(dir)
			names, err := os.ReadDir(dir)
			if err != nil {
				return ignoreMissing(err)
			}
			for _, name := range names {
				files := filepath.Join(dir, name.Name())
				if filepath.Base(dir) != plainDir {
					files = filepath.Join(files, upperDir) // the other directory is the kernel's
				}
				k := key{workspace, name.Name()}
				e := found[k]
				e.InUse = e.InUse || busy
				measure(files, &e)
				found[k] = e
			}
			return nil
		})
	})
	var out []Entry
	for k, e := range found {
		if e.Files > 0 || e.InUse {
			e.Workspace, e.Cache = k.workspace, k.cache
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Workspace, b.Workspace), strings.Compare(a.Cache, b.Cache))
	})
	return out, err
}

// measure adds the files of a directory. Files that cannot be read, or that are
// removed meanwhile, do not count.
func measure(dir string, e *Entry) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if d.IsDir() {
			return nil
		}
		e.Files++
		if info, err := d.Info(); err == nil && d.Type().IsRegular() {
			e.Bytes += info.Size()
		}
		return nil
	})
}

// Clear removes the private layers of a workspace, or all if workspace is empty.
// Layers in use stay and are reported. A run that starts meanwhile either has its
// layers whole or gets new ones.
func Clear(state, workspace string) (Cleared, error) {
	var done Cleared
	var failed error
	err := eachBase(state, func(base, name string) error {
		if workspace != "" && filepath.Base(base) != hash(workspace) {
			return nil
		}
		busy, removed := false, false
		failed = errors.Join(failed, eachSlot(base, func(dir string) error {
			f, err := openLocked(dir, unix.LOCK_EX|unix.LOCK_NB)
			if errors.Is(err, unix.EWOULDBLOCK) {
				busy = true
				return nil
			}
			if err != nil {
				return ignoreMissing(err) // removed meanwhile, and perhaps made anew for a run
			}
			defer f.Close()
			removed = true
			return tree.Remove(dir)
		}))
		if removed {
			done.Removed = append(done.Removed, name)
		}
		if busy {
			done.InUse = append(done.InUse, name)
			return nil
		}
		// If a run has begun to use the directory it is not empty and stays; the next
		// run writes the file again.
		_ = os.Remove(filepath.Join(base, workspaceFile))
		_ = os.Remove(base)
		return nil
	})
	return done, errors.Join(err, failed)
}

// inUse reports whether a run holds a directory.
func inUse(dir string) bool {
	// The lock is held for a moment only: a run that starts now takes the next slot.
	f, err := openLocked(dir, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, unix.EWOULDBLOCK)
}

// eachBase calls f for the directory of each workspace.
func eachBase(state string, f func(base, workspace string) error) error {
	all := filepath.Join(state, cachesDir)
	entries, err := os.ReadDir(all)
	if err != nil {
		return ignoreMissing(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		base := filepath.Join(all, e.Name())
		workspace, err := os.ReadFile(filepath.Join(base, workspaceFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("caches: %w", err)
		}
		if err := f(base, string(workspace)); err != nil {
			return err
		}
	}
	return nil
}

// eachSlot calls f for each directory of a workspace that contains caches.
func eachSlot(base string, f func(dir string) error) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return ignoreMissing(err)
	}
	for _, e := range entries {
		if e.IsDir() && (e.Name() == plainDir || strings.HasPrefix(e.Name(), slotPrefix)) {
			if err := f(filepath.Join(base, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
