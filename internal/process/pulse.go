// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"sync/atomic"
	"time"
)

// A pulse remembers when something happened last, and tells who waits for the next
// time. The zero pulse is ready; where nobody waits a beat costs two atomic words.
type pulse struct {
	last atomic.Int64 // nanoseconds since base, at least 1; 0 is never
	next atomic.Pointer[chan struct{}]
}

// beat notes that something has happened since base.
func (p *pulse) beat(base time.Time) {
	p.last.Store(max(int64(time.Since(base)), 1))
	if p.next.Load() == nil {
		return
	}
	if c := p.next.Swap(nil); c != nil {
		close(*c)
	}
}

// at returns when that was; the zero Time for never.
func (p *pulse) at(base time.Time) time.Time {
	n := p.last.Load()
	if n == 0 {
		return time.Time{}
	}
	return base.Add(time.Duration(n))
}

// wait returns a channel that is closed with the next beat.
func (p *pulse) wait() <-chan struct{} {
	for {
		if c := p.next.Load(); c != nil {
			return *c
		}
		c := make(chan struct{})
		if p.next.CompareAndSwap(nil, &c) {
			return c
		}
	}
}
