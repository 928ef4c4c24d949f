// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Sharing starts the commands of one conversation: those that are confined and have no network, or all
// the host's, start in one shared sandbox, which is opened for the first of them, and all others in
// sandboxes of their own. Those with a stage have a sandbox for each one that is named, and for a new one
// their own. So do all where this machine has no shared sandboxes. Close ends the sandboxes, and not the
// Executor.
type Sharing struct {
	Executor *Executor

	mu     sync.Mutex
	closed bool
	none   bool // there are no shared sandboxes here
	open   map[shareKey]*openShare
}

// A shareKey is what commands in one sandbox have in common.
type shareKey struct {
	network sandbox.Network
	stage   executor.Staging // the zero one for none
}

// An openShare is a sandbox that is open, or will be.
type openShare struct {
	once   sync.Once
	shared executor.Shared
	err    error
}

// Start is [executor.Executor.Start].
func (s *Sharing) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	const tries = 2 // the holder of the first one may just have been killed
	for range tries {
		in, err := s.sandbox(ctx, spec)
		if in == nil && err == nil {
			return s.Executor.Start(ctx, spec)
		}
		var p executor.Process
		if err == nil {
			p, err = in.Start(ctx, spec)
		}
		var apart *executor.ApartError
		switch {
		case err == nil:
			return p, nil
		case errors.As(err, &apart):
			return s.Executor.Start(ctx, spec)
		case !errors.Is(err, executor.ErrSharedEnded):
			return nil, err
		}
		s.forget(in)
	}
	return nil, executor.ErrSharedEnded
}

// sandbox returns the one that a command starts in; nil for one of its own.
func (s *Sharing) sandbox(ctx context.Context, spec *executor.Spec) (executor.Shared, error) {
	// A managed network is equal only where the same policy decides, also after changes; requests of a
	// protocol each bring their own.
	if spec.Policy.Mode() != sandbox.Managed || spec.Policy.Network() == sandbox.NetworkProxy {
		return nil, nil
	}
	key := shareKey{network: spec.Policy.Network()}
	if spec.Stage != nil {
		if key.stage = *spec.Stage; key.stage.ID == "" && key.stage.Name == "" {
			return nil, nil
		}
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	if s.none {
		s.mu.Unlock()
		return nil, nil
	}
	if s.open == nil {
		s.open = map[shareKey]*openShare{}
	}
	one := s.open[key]
	if one == nil {
		one = new(openShare)
		s.open[key] = one
	}
	s.mu.Unlock()
	one.once.Do(func() {
		one.shared, one.err = s.Executor.Open(context.WithoutCancel(ctx),
			&executor.SharedSpec{Policy: spec.Policy})
	})
	if one.err == nil {
		return one.shared, nil
	}
	var none *sandbox.UnsupportedError
	unsupported := errors.As(one.err, &none)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[key] == one {
		delete(s.open, key)
	}
	if unsupported {
		s.none = true
		return nil, nil
	}
	return nil, one.err
}

// forget drops a sandbox that has ended.
func (s *Sharing) forget(ended executor.Shared) {
	s.mu.Lock()
	for key, one := range s.open {
		if one.shared == ended {
			delete(s.open, key)
		}
	}
	s.mu.Unlock()
	_ = ended.Close() // it has ended
}

// Close stops everything in the sandboxes and waits for it. The nil Sharing does nothing. It may be called
// twice.
func (s *Sharing) Close() (err error) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for _, one := range open {
		one.once.Do(func() { one.err = ErrClosed }) // if it is not opened yet
		if one.shared != nil {
			err = errors.Join(err, one.shared.Close())
		}
	}
	return err
}
