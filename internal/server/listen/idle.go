// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"sync"
	"time"
)

// An idler knows when a server has had nothing to do for a while.
type idler struct {
	over  chan struct{} // closed then
	after time.Duration // 0 is never

	mu      sync.Mutex
	busy    int         // clients, processes, runs
	timer   *time.Timer // of the current rest; nil while there is something to do, and after stop
	stopped bool
}

// newIdler returns an idler that counts from now on. It must be stopped.
func newIdler(after time.Duration) *idler {
	i := &idler{over: make(chan struct{}), after: after}
	i.change(0)
	return i
}

// change says that there is more, or less, to do.
func (i *idler) change(by int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.busy += by
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
	if i.after == 0 || i.stopped || i.busy > 0 {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(i.after, func() { i.expire(&t) })
	i.timer = t
}

// expire ends the rest that a timer is for, unless it is over.
func (i *idler) expire(t **time.Timer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.timer == *t && !i.stopped {
		i.stopped = true
		close(i.over)
	}
}

// stop ends the counting; over stays open if it is.
func (i *idler) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}
