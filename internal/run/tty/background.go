// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"syscall"
	"time"
)

// A halt is a request to stop the job as the terminal would.
type halt struct {
	by   syscall.Signal
	done chan<- struct{} // closed when the job goes on
}

// background reports whether a terminal is in front of this process whose foreground another job has, and
// whose shell can bring this one there.
func (c *Console) background() bool {
	for _, f := range c.streams {
		if Is(f) && !Foreground(f) {
			return stoppable()
		}
	}
	return false
}

// draws is called before the program shows a screen of its own: the kernel stops a job in the background
// that changes the modes of its terminal for that.
func (f *Signals) draws() {
	if f.console.background() {
		f.halt(backgroundWrite)
	}
}

// look begins to look whether the program reads a terminal, while the job is in the background. It is
// there from the start or when it is continued. The kernel stops a job that reads the terminal of its
// session, and the program's is another one.
func (f *Signals) look() {
	if f.console.Reads == nil || !f.console.background() || !f.looking.CompareAndSwap(false, true) {
		return
	}
	f.running.Go(func() {
		defer f.looking.Store(false)
		const first, longest = 50 * time.Millisecond, time.Second
		timer := time.NewTimer(first)
		defer timer.Stop()
		for pause := first; f.console.background(); timer.Reset(pause) {
			select {
			case <-timer.C:
			case <-f.over:
				return
			}
			pause = min(pause*3/2, longest)
			if f.console.Reads() && f.console.background() {
				f.halt(backgroundRead)
				pause = first
			}
		}
	})
}

// halt stops the job and returns when it goes on. Where no shell could continue it, it does nothing.
func (f *Signals) halt(by syscall.Signal) {
	done := make(chan struct{})
	select {
	case f.halts <- halt{by, done}:
		<-done
	case <-f.over:
	}
}
