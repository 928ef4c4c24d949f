// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/internal/state"
)

// spills makes the files that keep what sessions print. The zero spills has made none.
type spills struct {
	mu     sync.Mutex
	store  *output.Store
	closed bool
}

// create makes the file of one session, or says why there is none. Both results are
// nil when none is wanted.
func (s *spills) create(name string, size int64) (*output.File, error) {
	if size < 0 {
		return nil, nil
	}
	store, err := s.open(size)
	if err != nil {
		return nil, err
	}
	return store.Create(name)
}

// open returns the folder of the files. Where none can be had, the next session tries
// again.
func (s *spills) open(size int64) (*output.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.store == nil {
		state, err := state.Folder()
		if err != nil {
			return nil, fmt.Errorf("there is no state folder: %w", err)
		}
		s.store = &output.Store{Dir: filepath.Join(state, "output"), PerFile: size}
	}
	return s.store, nil
}

// close removes the files that are left.
func (s *spills) close() error {
	s.mu.Lock()
	store := s.store
	s.store, s.closed = nil, true
	s.mu.Unlock()
	if store == nil {
		return nil
	}
	return store.Close()
}
