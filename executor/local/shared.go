// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
)

// A shared is an open shared sandbox of an Executor.
type shared struct {
	executor *Executor
	in       *opened

	mu       sync.Mutex
	closed   bool
	running  map[*command]struct{}
	starting sync.WaitGroup // added to under mu while not closed

	closing  sync.Once
	closeErr error
}

// Open implements [executor.Opener].
func (e *Executor) Open(ctx context.Context, spec *executor.SharedSpec) (executor.Shared, error) {
	ctx, done, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	in, err := open(ctx, &e.host, spec)
	if err != nil {
		return nil, err
	}
	return e.share(in), nil
}

// share keeps a sandbox until it is closed.
func (e *Executor) share(in *opened) *shared {
	s := &shared{executor: e, in: in, running: map[*command]struct{}{}}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == nil {
		e.open = map[*shared]struct{}{}
	}
	e.open[s] = struct{}{}
	return s
}

// opened returns the sandboxes that are open.
func (e *Executor) opened() []*shared {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.open))
}

// Start implements [executor.Shared].
func (s *shared) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, executor.ErrSharedEnded
	}
	s.starting.Add(1)
	s.mu.Unlock()
	defer s.starting.Done()
	c, err := s.executor.startIn(ctx, s, spec)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[c] = struct{}{}
	if s.closed {
		c.Stop()
	}
	return c, nil
}

// left forgets a command that has ended.
func (s *shared) left(c *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, c)
}

// Processes implements [executor.Shared].
func (s *shared) Processes() []executor.SharedProcess {
	s.mu.Lock()
	running := slices.Collect(maps.Keys(s.running))
	s.mu.Unlock()
	var out []executor.SharedProcess
	for _, c := range running {
		for _, p := range members(c.child) {
			p.Run, p.Started = c.run, c.started
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b executor.SharedProcess) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

// Usage implements [executor.Shared].
func (s *shared) Usage() executor.Usage { return usage(s.in) }

// Kill ends the sandbox at once: what runs in it has the error [executor.ErrSharedEnded]. Close is still to
// be called.
func (s *shared) Kill() { s.in.Kill() }

// Done implements [executor.Shared].
func (s *shared) Done() <-chan struct{} { return s.in.Done() }

// Close implements [executor.Shared].
func (s *shared) Close() error {
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *shared) close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.running {
		c.Stop()
	}
	s.mu.Unlock()
	s.starting.Wait() // what starts meanwhile stops itself
	s.mu.Lock()
	left := slices.Collect(maps.Keys(s.running))
	s.mu.Unlock()
	for _, c := range left {
		_, _ = c.Wait() // its caller gets the error
	}
	s.executor.mu.Lock()
	delete(s.executor.open, s)
	s.executor.mu.Unlock()
	if err := s.in.Close(); err != nil {
		return fmt.Errorf("cannot close the shared sandbox: %w", err)
	}
	return nil
}

var _ executor.Opener = (*Executor)(nil)
