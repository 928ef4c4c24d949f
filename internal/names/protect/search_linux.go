// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"sync/atomic"

	"github.com/sallyport-dev/sallyport/internal/names/git"
)

// worthSaving is how many names a search must have read when it is ended early, for writing
// down what it found to take less time than reading them again.
const worthSaving = 4096

// An unfinished root is one whose search for repositories did not look at every directory.
type unfinished struct {
	root string
	told bool // the user is told in this run that not everything is known
}

// A search goes on while a command runs. The nil search is over.
type search struct{ ended atomic.Bool }

// end has the search end. It does not wait for that.
func (w *search) end() {
	if w != nil {
		w.ended.Store(true)
	}
}

// resume searches roots to the end in the background: what it finds is protected from the
// start of the next command on. It gives way to starts, and [Scans.Close] waits for it.
func (s *Scans) resume(roots []unfinished) *search {
	if s == nil || len(roots) == 0 {
		return nil
	}
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed.Load() {
		return nil
	}
	w := &search{}
	s.running.Go(func() {
		for _, u := range roots {
			s.goOn(w, u)
		}
	})
	return w
}

// goOn searches one root until everything is known, the search is ended, or no more can be
// remembered.
func (s *Scans) goOn(w *search, u unfinished) {
	read := 0
	for again := true; again; {
		again = false
		s.mu.Lock()
		cache := s.cache(u.root)
		if u.told {
			cache.Warn(true)
		}
		found := git.Scan(u.root, cache, git.Limit{Stop: func() bool {
			again = s.starting.Load() > 0
			return again || w.ended.Load() || s.closed.Load()
		}})
		again = again && !w.ended.Load() && !s.closed.Load()
		if found.Known {
			cache.Warn(false)
		}
		if read += found.Read; !again && (found.Complete || u.told || read >= worthSaving) {
			s.save(u.root, cache)
		}
		s.mu.Unlock()
	}
}

// Close ends searches that go on, and waits for them.
func (s *Scans) Close() {
	s.life.Lock()
	s.closed.Store(true)
	s.life.Unlock()
	s.running.Wait()
}
