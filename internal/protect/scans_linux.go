// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/gitpaths"
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
	sum := sha256.Sum256([]byte(root))
	dir := filepath.Join(s.State, "scans")
	name := filepath.Join(dir, hex.EncodeToString(sum[:16]))
	s.mu.Lock()
	defer s.mu.Unlock()
	cache := s.caches[root]
	if cache == nil {
		cache = gitpaths.LoadCache(name)
		if s.caches == nil {
			s.caches = make(map[string]*gitpaths.Cache)
		}
		s.caches[root] = cache
	}
	err := f(cache)
	if cache.Save(name) != nil {
		_ = os.Mkdir(dir, 0o700) //nolint:forbidigo // the state directory is ours
		_ = cache.Save(name)     // what is not saved is searched again
	}
	return err
}
