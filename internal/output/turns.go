// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// freeWrite is how many bytes are written without a turn: more than prompts and answers have.
	freeWrite = 2 << 10
	// maxTurn is how long a turn lasts where the disk does not answer.
	maxTurn = 5 * time.Millisecond
)

// turns has a value for each writer of much output that is at work: at most half as many as there are
// processors. Commands that print without end would otherwise keep all processors of this process busy,
// and then the Go runtime looks only every 10 ms for what clients send.
var turns = make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1))

// A turn is that of one writer. The zero turn is not taken.
type turn struct{ taken atomic.Bool }

// take waits for a turn to write n bytes.
func (t *turn) take(n int) {
	if n >= freeWrite {
		turns <- struct{}{}
		t.taken.Store(true)
	}
}

// end ends the turn, if it is taken still.
func (t *turn) end() {
	if t.taken.CompareAndSwap(true, false) {
		<-turns
	}
}
