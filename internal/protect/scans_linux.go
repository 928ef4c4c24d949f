// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/gitpaths"
	"github.com/sallyport-dev/sallyport/internal/tree"
)

// Scans remembers what earlier searches for repositories found, in memory and below
// State. Several goroutines may use it at once.
type Scans struct {
	State string // the state directory

	mu     sync.Mutex
	caches map[string]*gitpaths.Cache
}

// with calls f with what is known of the directories below root, and saves what f adds.
// One search runs at a time. A nil Scans knows nothing.
func (s *Scans) with(root string, f func(*gitpaths.Cache) error) error {
	if s == nil {
		return f(nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cache := s.caches[root]
	if cache == nil {
		cache = new(gitpaths.Cache)
		s.file(root, func(name string) { cache = gitpaths.LoadCache(name) })
		if s.caches == nil {
			s.caches = make(map[string]*gitpaths.Cache)
		}
		s.caches[root] = cache
	}
	err := f(cache)
	if cache.Changed() {
		s.file(root, func(name string) { _ = cache.Save(name) }) // what is not saved is searched again
	}
	return err
}

// file calls f with the name of the file about root, by descriptor: the state directory may
// lie where another command can exchange it. Without that directory nothing is called.
func (s *Scans) file(root string, f func(name string)) {
	dir, err := s.open()
	if err != nil {
		return
	}
	defer dir.Close()
	sum := sha256.Sum256([]byte(root))
	f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), hex.EncodeToString(sum[:16])))
}

// open opens the directory of the files.
func (s *Scans) open() (*os.File, error) {
	state, err := tree.OpenPath(s.State)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	scans, err := tree.Make(state, "scans")
	if err != nil {
		return nil, err
	}
	defer scans.Close()
	return scans.Open(".")
}
