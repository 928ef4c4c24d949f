// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
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

// An Entry is what one workspace has of one cache.
type Entry struct {
	Workspace string // empty when its record is missing
	Cache     string // as in the table
	Bytes     int64  // what regular files hold
	Files     int    // everything but folders: what was written, and marks of what was removed
	InUse     bool   // a run holds one of the slots with it
}

// List says what is kept below a state folder, by workspace and cache, without
// what is empty and not in use. A state folder without caches has none. It reads
// every folder of them.
func List(state string) ([]Entry, error) {
	var out []Entry
	err := eachBase(state, func(base, workspace string) error {
		at := map[string]int{}
		first := len(out)
		defer func() {
			kept := slices.DeleteFunc(out[first:], func(e Entry) bool { return e.Files == 0 && !e.InUse })
			out = out[:first+len(kept)]
		}()
		return eachSlot(base, func(dir string) error {
			busy := inUse(dir)
			caches, err := os.ReadDir(dir)
			if err != nil {
				return ignoreGone(err)
			}
			for _, c := range caches {
				i, ok := at[c.Name()]
				if !ok {
					i = len(out)
					at[c.Name()] = i
					out = append(out, Entry{Workspace: workspace, Cache: c.Name()})
				}
				out[i].InUse = out[i].InUse || busy
				what := filepath.Join(dir, c.Name())
				if filepath.Base(dir) != plainFolder {
					what = filepath.Join(what, upperFolder) // the rest is the kernel's
				}
				measure(what, &out[i])
			}
			return nil
		})
	})
	return out, err
}

// measure adds what a folder holds. What cannot be read, or goes away meanwhile,
// counts nothing.
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

// A Cleared is what [Clear] did.
type Cleared struct {
	Removed []string // the workspaces, or parts of them, that lost something
	InUse   []string // the workspaces with something that a run holds, which stays
}

// Clear removes what is kept for a workspace, or for all when workspace is empty.
// What a run holds at the moment stays and is reported. One that starts meanwhile
// either has its layers whole or gets new ones.
func Clear(state, workspace string) (Cleared, error) {
	var done Cleared
	var failed error
	err := eachBase(state, func(base, name string) error {
		if workspace != "" && filepath.Base(base) != hash(workspace) {
			return nil
		}
		busy, removed := false, false
		failed = errors.Join(failed, eachSlot(base, func(dir string) error {
			switch err := clearFolder(dir); {
			case errors.Is(err, unix.EWOULDBLOCK):
				busy = true
				return nil
			case err != nil:
				return err
			}
			removed = true
			return nil
		}))
		if removed {
			done.Removed = append(done.Removed, name)
		}
		if busy {
			done.InUse = append(done.InUse, name)
			return nil
		}
		// Somebody may have begun to use it: then it is not empty, and stays.
		// The file is written anew by whoever misses it.
		_ = os.Remove(filepath.Join(base, workspaceFile))
		_ = os.Remove(base)
		return nil
	})
	return done, errors.Join(err, failed)
}

// clearFolder removes a folder that nobody holds.
func clearFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return ignoreGone(err)
	}
	defer f.Close()
	if err := flock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if !sameFolder(f, dir) {
		return nil // others have cleared it meanwhile, and what is there now may be in use
	}
	return tree.Remove(dir)
}

// inUse reports whether a run holds a folder.
func inUse(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	// For a moment only: a run that comes just now takes the next slot.
	return errors.Is(flock(f, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// eachBase calls f for each workspace, sorted by its hash.
func eachBase(state string, f func(base, workspace string) error) error {
	all := filepath.Join(state, cachesFolder)
	entries, err := os.ReadDir(all)
	if err != nil {
		return ignoreGone(err)
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

// eachSlot calls f for each folder of a workspace that holds caches.
func eachSlot(base string, f func(dir string) error) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return ignoreGone(err)
	}
	for _, e := range entries {
		if e.IsDir() && (e.Name() == plainFolder || strings.HasPrefix(e.Name(), slotPrefix)) {
			if err := f(filepath.Join(base, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("caches: %w", err)
}
