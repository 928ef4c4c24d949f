// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// The errors of a Table.
var (
	ErrTableFull   = errors.New("all places are taken")
	ErrTableClosed = errors.New("the table is closed")
	ErrTableTaken  = errors.New("the identity is taken")
)

// A Table keeps items of one owner. The zero Table forgets an item when it ends. The exported fields must
// not change after the first Reserve. A Table must not be copied; its methods may be called from several
// goroutines at once.
type Table[T any] struct {
	// Ended is how many items that have ended are kept, and Weight how much they weigh together; 0 is
	// no bound on the weight. Of too many the oldest go.
	Ended, Weight int
	// Time is how long one is kept; 0 means no limit.
	Time time.Duration
	// Drop is called once with each item that goes because of these bounds, beside what else happens. Close
	// waits for it. Nil does nothing.
	Drop func(T)

	mu     sync.Mutex
	taken  int // places
	known  map[string]*Place[T]
	ended  []*Place[T] // those of them whose items have ended, the oldest first
	weight int         // of ended
	paused bool
	closed bool
	drops  sync.WaitGroup // added to under mu while not closed
}

// A Place is what an item takes in a Table from before its start until its end.
type Place[T any] struct {
	table *Table[T]
	id    string
	item  T

	// These are guarded by the lock of the table.
	known, over bool
	weight      int
	timer       *time.Timer // forgets the item; nil for none
}

// Reserve takes a place, of which there are so many. One call of End must follow. The error is ErrFull
// or ErrClosed.
func (t *Table[T]) Reserve(most int) (*Place[T], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, ErrTableClosed
	case t.taken >= most:
		return nil, ErrTableFull
	}
	t.taken++
	return &Place[T]{table: t}, nil
}

// Enter has an item that is starting, or runs, known by its identity, and returns how many are. It is
// called once. The error is ErrTaken or ErrClosed.
func (p *Place[T]) Enter(id string, item T) (live int, err error) {
	t := p.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, ErrTableClosed
	}
	if t.known[id] != nil {
		return 0, ErrTableTaken
	}
	if t.known == nil {
		t.known = make(map[string]*Place[T])
	}
	p.id, p.item, p.known = id, item, true
	t.known[id] = p
	return len(t.known) - len(t.ended), nil
}

// End frees the place. An item that is known is kept with that weight as one that has ended, as long
// as the bounds of the Table let it.
func (p *Place[T]) End(weight int) {
	t := p.table
	t.mu.Lock()
	t.taken--
	p.over, p.weight = true, weight
	if p.known {
		t.ended = append(t.ended, p)
		t.weight += weight
		t.expire(p)
	}
	var old []*Place[T]
	for !t.closed && (len(t.ended) > t.Ended || t.Weight > 0 && t.weight > t.Weight) {
		old = append(old, t.ended[0])
		t.remove(t.ended[0])
	}
	t.drop(old)
	t.mu.Unlock()
}

// Forget has the identity be unknown, and reports whether it was known. The place stays taken until
// End.
func (p *Place[T]) Forget() bool {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	return p.table.remove(p)
}

// Find returns the item with an identity, and whether there is one.
func (t *Table[T]) Find(id string) (item T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.known[id]; p != nil {
		return p.item, true
	}
	return item, false
}

// List returns the items that are starting or run, in no order, and those that have ended, the oldest
// first.
func (t *Table[T]) List() (live, ended []T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.known {
		if !p.over {
			live = append(live, p.item)
		}
	}
	for _, p := range t.ended {
		ended = append(ended, p.item)
	}
	return live, ended
}

// Count returns how many places are taken, and how many items that are starting or run, and that have
// ended, are known.
func (t *Table[T]) Count() (taken, live, ended int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken, len(t.known) - len(t.ended), len(t.ended)
}

// Pause stops the time of those that have ended, for which Resume begins it anew.
func (t *Table[T]) Pause() { t.pause(true) }

// Resume ends what Pause began.
func (t *Table[T]) Resume() { t.pause(false) }

func (t *Table[T]) pause(paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = paused
	for _, p := range t.ended {
		t.expire(p)
	}
}

// Close has no place be reserved any more, and no item go because of a bound. It waits for Drop. What
// is known stays known.
func (t *Table[T]) Close() {
	t.mu.Lock()
	t.closed = true
	for _, p := range t.ended {
		t.expire(p)
	}
	t.mu.Unlock()
	t.drops.Wait()
}

// remove takes an item out, and reports whether it was known. The caller holds mu.
func (t *Table[T]) remove(p *Place[T]) bool {
	if !p.known {
		return false
	}
	p.known = false
	delete(t.known, p.id)
	if !p.over {
		return true
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	t.ended = slices.DeleteFunc(t.ended, func(e *Place[T]) bool { return e == p })
	t.weight -= p.weight
	return true
}

// expire begins the time of an item that has ended, or stops it. The caller holds mu.
func (t *Table[T]) expire(p *Place[T]) {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if t.Time <= 0 || t.paused || t.closed {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(t.Time, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if p.timer == timer && t.remove(p) {
			t.drop([]*Place[T]{p})
		}
	})
	p.timer = timer
}

// drop calls Drop beside the caller, who holds mu.
func (t *Table[T]) drop(old []*Place[T]) {
	if len(old) == 0 || t.Drop == nil {
		return
	}
	t.drops.Go(func() {
		for _, p := range old {
			t.Drop(p.item)
		}
	})
}
