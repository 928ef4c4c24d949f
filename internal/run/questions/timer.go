// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package questions

import (
	"sync"
	"time"
)

// A PausedTimer calls a function after a time, which stands still while the Timer is paused: a command does
// not use up its time limit with waiting for a person. The zero Timer was not started.
type PausedTimer struct {
	mu     sync.Mutex
	timer  *time.Timer // nil before Start, and after Stop
	left   time.Duration
	since  time.Time // when it was started or resumed
	paused bool
}

// Start has f called in a goroutine of its own after d; 0 and less never calls it. It can be called
// once, also while the Timer is paused.
func (t *PausedTimer) Start(d time.Duration, f func()) {
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
func (t *PausedTimer) Pause(on bool) {
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
		t.timer, t.left = nil, 0 // it has called f
	}
	t.paused = on
}

// Stop ends it. A call of f may be under way.
func (t *PausedTimer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		return
	}
	t.timer.Stop()
	if !t.paused {
		t.left -= time.Since(t.since)
	}
	t.timer = nil
}

// Left returns what was left of the time when it was stopped or paused, at least 1 ns; 0 of one that was not
// started.
func (t *PausedTimer) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		return 0
	}
	return max(t.left, 1)
}

// Timers stand still together. The zero Timers are ready; their methods may be called from several
// goroutines at once.
type Timers struct {
	mu     sync.Mutex
	paused bool
	timers map[*PausedTimer]struct{}
}

// Start has f called in a goroutine of its own after d, as [PausedTimer.Start] does, while the Timers are
// not paused. Stop must be called.
func (t *Timers) Start(d time.Duration, f func()) (stop func()) {
	timer := new(PausedTimer)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timers == nil {
		t.timers = map[*PausedTimer]struct{}{}
	}
	t.timers[timer] = struct{}{}
	timer.Pause(t.paused)
	timer.Start(d, f)
	return func() {
		timer.Stop()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.timers, timer)
	}
}

// Pause has the time stand still, or go on.
func (t *Timers) Pause(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = on
	for timer := range t.timers {
		timer.Pause(on)
	}
}

// Paused reports whether the time stands still.
func (t *Timers) Paused() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paused
}
