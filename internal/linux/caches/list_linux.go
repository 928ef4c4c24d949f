// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/linux/layers"
	"github.com/sallyport-dev/sallyport/internal/safefile"

	"golang.org/x/sys/unix"
)

// List returns the private layers in a state directory, sorted by workspace and
// cache, except for those that are empty and not in use. It reads every directory of
// them.
func List(state string) ([]Entry, error) {
	all, err := workspaces(state)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, w := range all {
		found := map[string]Entry{}
		for _, dir := range w.slots {
			busy := layers.InUse(dir) // a run that starts now takes the next slot
			names, err := os.ReadDir(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("caches: %w", err)
			}
			for _, name := range names {
				e := found[name.Name()]
				e.Workspace, e.Cache, e.InUse = w.name, name.Name(), e.InUse || busy
				files := filepath.Join(dir, name.Name())
				if strings.HasSuffix(dir, plainDir) {
					measure(files, &e)
				} else { // what else is there is the kernel's
					measure(filepath.Join(files, layers.UpperDir), &e)
					measure(filepath.Join(files, plainDir), &e)
				}
				found[e.Cache] = e
			}
		}
		for _, cache := range slices.Sorted(maps.Keys(found)) {
			if e := found[cache]; e.Files > 0 || e.InUse {
				out = append(out, e)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return strings.Compare(a.Workspace, b.Workspace) })
	return out, nil
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
	all, failed := workspaces(state)
	for _, w := range all {
		if workspace != "" && filepath.Base(w.base) != hash(workspace) {
			continue
		}
		busy, removed := false, false
		shown, err := layers.OpenLocked(filepath.Join(w.base, shownDir), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) { // a run shows layers of other classes
			done.InUse = append(done.InUse, w.name)
			continue
		}
		for _, dir := range w.slots {
			if filepath.Base(dir) == shownDir {
				continue
			}
			f, err := layers.OpenLocked(dir, unix.LOCK_EX|unix.LOCK_NB)
			if err == nil {
				removed = true
				err = safefile.RemoveTreePath(dir)
				f.Close()
			}
			switch {
			case errors.Is(err, unix.EWOULDBLOCK):
				busy = true
			// else it was removed meanwhile, and perhaps made anew for a run
			case !errors.Is(err, fs.ErrNotExist):
				failed = errors.Join(failed, err)
			}
		}
		if shown != nil {
			failed = errors.Join(failed, safefile.RemoveTreePath(shown.Name()))
			shown.Close()
		}
		if removed {
			done.Removed = append(done.Removed, w.name)
		}
		if busy {
			done.InUse = append(done.InUse, w.name)
			continue
		}
		// If a run has begun to use the directory it is not empty and stays; the next run
		// writes the file again.
		_ = os.Remove(filepath.Join(w.base, workspaceFile))
		_ = os.Remove(w.base)
	}
	return done, failed
}

// A workspace is the directory of a workspace with those of its slots.
type workspace struct {
	base, name string
	slots      []string
}

// workspaces returns the workspaces in a state directory.
func workspaces(state string) ([]workspace, error) {
	bases, err := subdirs(filepath.Join(state, cachesDir))
	if err != nil {
		return nil, err
	}
	var out []workspace
	for _, base := range bases {
		name, err := os.ReadFile(filepath.Join(base, workspaceFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("caches: %w", err)
		}
		slots, err := subdirs(base)
		if err != nil {
			return nil, err
		}
		out = append(out, workspace{base, string(name), slots})
	}
	return out, nil
}

// subdirs returns the directories in dir, none if it does not exist.
func subdirs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("caches: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	return dirs, nil
}
