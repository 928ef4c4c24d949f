// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// The bounds of what is remembered of starts that have ended. Those that have started something, and those
// that have not, do not displace each other: the latter cost little.
const (
	maxStarts = 65_536 // of either kind; the oldest go first
	startTime = 24 * time.Hour
	// maxUnrun is how many bytes the answers have of starts that have started nothing.
	maxUnrun = 64 << 20
)

// Forgotten is the Size of a StartAnswer that is not remembered.
const Forgotten = -1

// A StartAnswer is what a start came to.
type StartAnswer interface {
	// Size is 0 where something was started, and else how many bytes the answer has, or Forgotten. It is
	// called once.
	Size() int
}

// Starts remembers what starts came to, by keys that clients choose, so that a start whose answer was lost is
// repeated and not performed again. The zero Starts is ready. It must not be copied; its methods may be
// called from several goroutines at once.
type Starts[A StartAnswer] struct {
	mu    sync.Mutex
	known map[StartKey]*Start[A]
	// Those of them that have ended, the oldest first, and the bytes of unrun.
	ran, unrun []*Start[A]
	size       int
}

// A StartKey identifies a start. It takes the same memory for every ID. The zero StartKey identifies none.
type StartKey [sha256.Size]byte

// KeyOf returns the key of a start to which a client has given an ID, which counts within a scope, such as
// the method and who calls it. Without an ID it is the zero key.
func KeyOf(id string, scope ...string) (key StartKey) {
	if id == "" {
		return key
	}
	sum := sha256.New()
	for _, part := range append(scope, id) {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // it never fails
	}
	sum.Sum(key[:0])
	return key
}

// A Start is one that is in progress, or that has ended.
type Start[A StartAnswer] struct {
	starts *Starts[A]
	key    StartKey
	done   chan struct{} // closed at the end

	// These are set before that.
	answer A
	size   int
	at     time.Time
}

// Begin returns the start with a key, and reports whether it is the first one, which the caller performs: one
// call of End must follow. A start without a key is always one.
func (s *Starts[A]) Begin(key StartKey) (start *Start[A], first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tidy()
	if start, ok := s.known[key]; ok {
		return start, false
	}
	start = &Start[A]{starts: s, key: key, done: make(chan struct{})}
	if key != (StartKey{}) {
		if s.known == nil {
			s.known = make(map[StartKey]*Start[A])
		}
		s.known[key] = start
	}
	return start, true
}

// End ends a start. Its answer is remembered for a day, as long as there is room.
func (t *Start[A]) End(answer A) {
	s := t.starts
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(t.done)
	t.answer, t.size, t.at = answer, answer.Size(), time.Now()
	switch {
	case t.key == StartKey{}:
	case t.size == Forgotten:
		delete(s.known, t.key)
	case t.size == 0:
		s.ran = append(s.ran, t)
	default:
		s.unrun = append(s.unrun, t)
		s.size += t.size
	}
	s.tidy()
}

// Await blocks until a start has ended, and returns its answer. It reports false if that is not remembered,
// so that a next one is to be performed, and if ctx ends before.
func (t *Start[A]) Await(ctx context.Context) (answer A, ok bool) {
	select {
	case <-t.done:
		return t.answer, t.size != Forgotten
	case <-ctx.Done():
		return answer, false
	}
}

// Once returns the answer of an earlier start with a key, and reports that there was one. Otherwise it calls
// perform. It waits for an earlier start that is in progress; if ctx ends before, the answer is the zero
// value.
func (s *Starts[A]) Once(ctx context.Context, key StartKey, perform func() A) (answer A, again bool) {
	for {
		start, first := s.Begin(key)
		if first {
			return start.perform(perform), false
		}
		if answer, ok := start.Await(ctx); ok || ctx.Err() != nil {
			return answer, true
		}
	}
}

// perform performs a start. One that panics is over.
func (t *Start[A]) perform(perform func() A) (answer A) {
	defer func() { t.End(answer) }()
	return perform()
}

// tidy forgets what is old, and what is too much. The caller holds mu.
func (s *Starts[A]) tidy() {
	old := func(ended []*Start[A]) bool {
		return len(ended) > 0 && (len(ended) > maxStarts || time.Since(ended[0].at) > startTime)
	}
	for old(s.ran) {
		s.ran = s.forget(s.ran)
	}
	for old(s.unrun) || s.size > maxUnrun {
		s.size -= s.unrun[0].size
		s.unrun = s.forget(s.unrun)
	}
}

// forget forgets the first one, and returns the others. The caller holds mu.
func (s *Starts[A]) forget(ended []*Start[A]) []*Start[A] {
	delete(s.known, ended[0].key)
	ended[0] = nil
	return ended[1:]
}
