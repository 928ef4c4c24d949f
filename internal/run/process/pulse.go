// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"sync/atomic"
	"time"
)

// A pulse remembers when something happened last, and tells when it happens the next
// time. Without a waiter a beat costs two atomic words.
type pulse struct {
	base time.Time                     // when there was no beat yet
	at   atomic.Int64                  // nanoseconds since base, at least 1; 0 is never
	wait atomic.Pointer[chan struct{}] // nil while no caller of next waits
}

// beat notes that something has happened.
func (p *pulse) beat() {
	p.at.Store(max(int64(time.Since(p.base)), 1))
	if p.wait.Load() == nil {
		return
	}
	if c := p.wait.Swap(nil); c != nil {
		close(*c)
	}
}

// last returns when that was; the zero Time is never.
func (p *pulse) last() time.Time {
	n := p.at.Load()
	if n == 0 {
		return time.Time{}
	}
	return p.base.Add(time.Duration(n))
}

// next returns a channel that is closed with the next beat.
func (p *pulse) next() <-chan struct{} {
	for {
		if c := p.wait.Load(); c != nil {
			return *c
		}
		c := make(chan struct{})
		if p.wait.CompareAndSwap(nil, &c) {
			return c
		}
	}
}

// A delivery says whether output is on its way: from before a read until Config.Output has
// returned from its bytes.
type delivery struct {
	under    atomic.Bool
	returned pulse
}

func (d *delivery) begin() { d.under.Store(true) }

func (d *delivery) over() {
	d.under.Store(false)
	d.returned.beat()
}

// busy returns a channel that is closed when the delivery is over; nil where there is none.
func (d *delivery) busy() <-chan struct{} {
	over := d.returned.next()
	if !d.under.Load() {
		return nil
	}
	return over
}
