// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"testing"
	"time"
)

// oneTurn has a single turn for a test.
func oneTurn(t *testing.T) {
	before := turns
	turns = make(chan struct{}, 1)
	t.Cleanup(func() { turns = before })
}

// TestPace: output that no client reads waits for the turns of others, not for its own, and lets others in.
func TestPace(t *testing.T) {
	oneTurn(t)
	longAgo := time.Now().Add(-time.Hour) // a turn of MaxPause
	var p, q Pace
	alone := false
	for range 100 { // its turn ends on a slow machine
		p.Wait(longAgo, freeWrite)
		before := p.turn
		p.Wait(longAgo, freeWrite)
		alone = alone || p.turn == before
	}
	if !alone {
		t.Error("it waits for its own turn")
	}

	begin := time.Now()
	p.Wait(longAgo, freeWrite)
	q.Wait(longAgo, freeWrite-1)
	if q.turn != nil {
		t.Error("a small output had a turn")
	}
	q.Wait(longAgo, freeWrite)
	if took := time.Since(begin); took < MaxPause {
		t.Errorf("another one waited %v, want %v", took, MaxPause)
	}

	pacing.Add(1) // one that waits
	defer pacing.Add(-1)
	p.Wait(longAgo, freeWrite)
	begin = time.Now()
	before := p.turn
	p.Wait(longAgo, freeWrite)
	if took := time.Since(begin); p.turn == before {
		t.Errorf("it went on after %v, before one that waits", took)
	}
	turns <- struct{}{} // a turn ends by itself
}

// TestPaceLength: a turn is longer than the work before it, and short where the disk is slow.
func TestPaceLength(t *testing.T) {
	oneTurn(t)
	for _, work := range []time.Duration{time.Millisecond / 4, time.Hour} {
		var p Pace
		begin := time.Now()
		p.Wait(begin.Add(-work), freeWrite)
		turns <- struct{}{}
		if took := time.Since(begin); took < min(pause*work, MaxPause) || took > time.Minute {
			t.Errorf("work of %v has a turn of %v", work, took)
		}
		<-turns
	}
}
