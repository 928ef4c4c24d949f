// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/run/process"
)

// maxStarts is how many starts are remembered: many more than wait for an answer at once.
const maxStarts = 1024

// Starts remembers what runs a client has started, by IDs of the client, so that a start whose answer was
// lost with its connection is repeated and not performed again. The zero Starts is ready. It must not be
// copied.
type Starts struct {
	mu    sync.Mutex
	known process.Recent[*started]
}

// A started is a start that is in progress until done is closed, or that started a run.
type started struct {
	done chan struct{}
	run  string // its ID; "" means that the start was not one, and is not known any more
}

// Once returns the ID of the run that a start with an ID has started, and reports that this was an earlier
// one. Otherwise it calls start, which returns the ID of a run unless none runs. It waits for an earlier
// start that is in progress, until life ends, and then returns "". A start without an ID is always made.
func (s *Starts) Once(life context.Context, id string, start func() string) (run string, again bool) {
	if id == "" {
		return start(), false
	}
	for {
		e, first := s.enter(id)
		if first {
			defer s.settle(id, e)
			e.run = start()
			return e.run, false
		}
		select {
		case <-e.done:
		case <-life.Done():
			return "", true
		}
		if e.run != "" {
			return e.run, true
		}
	}
}

// enter returns what there is of a start, and reports whether it is the first.
func (s *Starts) enter(id string) (e *started, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.known.Find(id); ok {
		return e, false
	}
	e = &started{done: make(chan struct{})}
	s.known.Most = maxStarts
	s.known.Add(id, e)
	return e, true
}

// settle ends a start, and forgets one that has started no run.
func (s *Starts) settle(id string, e *started) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(e.done)
	if e.run == "" {
		s.known.Remove(id)
	}
}
