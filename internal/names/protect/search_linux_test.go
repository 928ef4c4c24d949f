// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/names/git"
)

// manyDirs makes so many directories with a repository in the last one.
func manyDirs(t *testing.T, directories int) (root, work string) {
	t.Helper()
	root = t.TempDir()
	for i := range directories {
		work = filepath.Join(root, fmt.Sprintf("d%03d", i/100), fmt.Sprintf("e%02d", i%100))
		if err := os.MkdirAll(work, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(work, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root, work
}

// start searches a root as the start of a command does, within such a limit.
func start(t *testing.T, s *Scans, root string, entries int) (found git.Found, warned bool) {
	t.Helper()
	err := s.with(root, func(c *git.Cache) error {
		found = git.Scan(root, c, git.Limit{Entries: entries})
		warned = c.Warned()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, warned
}

// stateDir returns a directory as the state directory is.
func stateDir(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newScans returns Scans that another one with the same state directory has written for.
func newScans(t *testing.T, state string) *Scans {
	s := &Scans{State: state}
	t.Cleanup(s.Close)
	return s
}

// TestSearchGoesOn: what a start did not reach is found while the command runs, and known at
// the next start, also of another process.
func TestSearchGoesOn(t *testing.T) {
	root, work := manyDirs(t, 6000)
	state := stateDir(t)
	s := newScans(t, state)
	if found, _ := start(t, s, root, 600); found.Known || len(found.Repositories) > 0 {
		t.Fatalf("known %v, repositories %q", found.Known, found.Repositories)
	}
	s.resume([]unfinished{{root, true}})
	s.running.Wait()
	for i, s := range []*Scans{s, newScans(t, state)} {
		found, warned := start(t, s, root, 600)
		if !found.Known || warned || len(found.Repositories) != 1 || found.Repositories[0] != work {
			t.Errorf("%d: known %v, warned %v, repositories %q", i, found.Known, warned, found.Repositories)
		}
	}
}

// TestSearchEnds: a search ends with its command, and what it has found, and that the user was
// told, is known to the next process.
func TestSearchEnds(t *testing.T) {
	root, _ := manyDirs(t, 3000)
	state := stateDir(t)
	s := newScans(t, state)
	start(t, s, root, 200)
	w := &search{}
	w.end()
	s.goOn(w, unfinished{root, true})
	if found, warned := start(t, newScans(t, state), root, 200); found.Known || !warned {
		t.Errorf("known %v, warned %v", found.Known, warned)
	}
	s.Close()
	if s.resume([]unfinished{{root, false}}) != nil {
		t.Error("a search goes on after Close")
	}
	var none *search
	none.end()
}

// TestSearchGivesWay: a start does not wait until a search in the background has found
// everything, and the search goes on afterwards.
func TestSearchGivesWay(t *testing.T) {
	root, _ := manyDirs(t, 3000)
	s := newScans(t, stateDir(t))
	start(t, s, root, 200)
	s.starting.Add(1) // a start waits
	w := s.resume([]unfinished{{root, false}})
	s.mu.Lock() // it gets its turn, although the search is not ended
	known := git.Scan(root, s.cache(root), git.Limit{Entries: -1}).Known
	s.mu.Unlock()
	if known || w.ended.Load() {
		t.Errorf("known %v although a start waits", known)
	}
	s.starting.Add(-1)
	s.running.Wait()
	if found, _ := start(t, s, root, 20_000); !found.Known {
		t.Error("the search did not go on")
	}
}
