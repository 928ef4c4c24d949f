// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// Turns are what output and questions share: what was printed before a question came is shown
// before it, and what is printed later after it.
type turns struct {
	mu      sync.Mutex
	ctx     context.Context // of what is shown; nil before there is output
	ended   reader          // finds the end of the output
	shown   uint64          // the offset after what was printed
	changed chan struct{}   // closed with the next output; nil when no question waits for it

	printed sync.Mutex // held while something is printed, and during a question
	away    func()     // undoes what the program has left on the terminal; nil before there is output
	// takes the terminal from the reader of keys until give; nil where there is none
	take, give func()
}

// begin says whose output is going to be shown, until ctx ends.
func (s *turns) begin(ctx context.Context, c client, id string, away func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.ended, s.away = ctx, reader{c: c, id: id}, away
}

// print prints output that ends at an offset.
func (s *turns) print(out *printer, chunks []wire.RunChunk, next uint64) error {
	s.printed.Lock()
	err := out.show(chunks)
	s.printed.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = next
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	return err
}

// around calls ask when all output that there is now was printed, and lets nothing be printed
// meanwhile. It is for one question at a time.
func (s *turns) around(ask func()) {
	s.mu.Lock()
	ctx, r, away := s.ctx, s.ended, s.away
	r.next = s.shown
	s.mu.Unlock()
	if ctx != nil {
		for more := true; more; {
			chunks, _, err := r.read(ctx, false)
			more = err == nil && len(chunks) > 0
		}
		s.await(ctx, r.next)
	}
	s.printed.Lock()
	defer s.printed.Unlock()
	if away != nil {
		away()
	}
	s.mu.Lock()
	take, give := s.take, s.give
	s.mu.Unlock()
	if take != nil {
		take()
		defer give()
	}
	ask()
}

// keys says who reads keys from the terminal, and leaves them to questions meanwhile.
func (s *turns) keys(take, give func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take, s.give = take, give
}

// await waits until output was printed up to an offset, or ctx ends.
func (s *turns) await(ctx context.Context, end uint64) {
	for {
		s.mu.Lock()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed, done := s.changed, s.shown >= end
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
