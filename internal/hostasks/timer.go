// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostasks

import (
	"sync"
	"time"
)

// A Timer calls a function after a time, which stands still while the Timer is paused: a command does
// not use up its time limit with waiting for a person. The zero Timer was not started.
type Timer struct {
	mu     sync.Mutex
	timer  *time.Timer // nil before Start, and after Stop
	left   time.Duration
	since  time.Time // when it was started or resumed
	paused bool
}

// Start has f called in a goroutine of its own after d; 0 and less never calls it. It can be called
// once, also while the Timer is paused.
func (t *Timer) Start(d time.Duration, f func()) {
	if d <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left, t.since = d, time.Now()
	t.timer = time.AfterFunc(d, f)
	if t.paused {
		t.timer.Stop()
	}
}

// Pause has the time stand still, or go on.
func (t *Timer) Pause(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case on == t.paused:
		return
	case t.timer == nil:
	case !on:
		t.since = time.Now()
		t.timer.Reset(t.left)
	case t.timer.Stop():
		t.left -= time.Since(t.since)
	default:
		t.timer = nil // it has called f
	}
	t.paused = on
}

// Stop ends it. A call of f may be under way.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}
