// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// pause is how long a turn lasts, as a multiple of the work on the output, and MaxPause how long it
	// lasts at most, where the disk is slow.
	pause    = 12
	MaxPause = 5 * time.Millisecond
	// freeWrite is how many bytes are written without a turn: more than prompts and answers have.
	freeWrite = 2 << 10
)

// turns holds a value for each Pace that has its turn.
var turns = make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1))

// pacing counts the calls that wait for a turn.
var pacing atomic.Int32

// A Pace slows down a command whose output no client reads, while there are others of its kind.
// Commands that print without end would keep all processors busy, with their own work and that of this
// process, and its clients would wait. The zero Pace is ready. It is used by one goroutine at a time.
type Pace struct{ turn *time.Timer }

// Wait waits for a turn after the work on n bytes of output, which began then. A turn lasts for a
// multiple of that work, or until the next one of the same Pace if no other one waits.
func (p *Pace) Wait(begin time.Time, n int) {
	if n < freeWrite {
		return
	}
	length := min(pause*time.Since(begin), MaxPause)
	if pacing.Load() == 0 && p.turn != nil && p.turn.Stop() {
		p.turn.Reset(length)
		return
	}
	pacing.Add(1)
	turns <- struct{}{}
	pacing.Add(-1)
	p.turn = time.AfterFunc(length, func() { <-turns })
}
