// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A forwarder sends the signals that this process gets on to a program.
type forwarder struct {
	arrived chan os.Signal
	numbers chan int             // of the signals, in order of their arrival
	ready   chan struct{}        // closed when all signals are caught
	lost    chan chan<- struct{} // the terminal is gone; closes what it gets when the program knows
	console *console             // suspended before a stop; nil without a terminal to suspend
	over    chan struct{}
	running sync.WaitGroup
	end     func(syscall.Signal) // ends this process
	late    time.Duration        // how long a signal waits for the program before that
}

// forwardSignals begins to catch signals. It returns at once: that takes the
// runtime about a millisecond, in which flags and files can be checked. Signals that this
// process ignores, as under nohup(1), stay ignored.
//
// A signal that is not caught yet is lost or ends the process, so no program may begin
// before ready is closed: its output makes people send signals.
//
// With a console the program has a terminal of its own, and gets no SIGWINCH from here.
func forwardSignals(c *console) *forwarder {
	f := &forwarder{
		arrived: make(chan os.Signal, 32), numbers: make(chan int),
		ready: make(chan struct{}), over: make(chan struct{}),
		lost: make(chan chan<- struct{}), console: c,
		end: endSelf, late: 2 * time.Second,
	}
	f.running.Go(func() {
		for _, s := range forwarded() {
			if !signal.Ignored(s) && !(c != nil && s == resizeSignal) {
				signal.Notify(f.arrived, s)
			}
		}
		close(f.ready)
		f.forward()
	})
	return f
}

// stop ends the forwarding. With last this process ends, and signals stay caught: to
// change that takes as long as to begin.
func (f *forwarder) stop(last bool) {
	close(f.over)
	f.running.Wait()
	if !last {
		signal.Stop(f.arrived)
	}
}

// forward sends until it is over.
func (f *forwarder) forward() {
	hangUps, sent := 0, false
	for {
		select {
		case s := <-f.arrived:
			if s == syscall.SIGHUP {
				if hangUps++; sent && hangUps == 1 {
					continue // the program has got this one
				}
			}
			// The end of input comes after a hang-up, and a stop after the program's own.
			n, _ := s.(syscall.Signal) // 0, which is none, for others
			f.deliver(n, n == stopSignal || n == syscall.SIGHUP)
			if n == stopSignal {
				f.console.suspend()
				stopSelf()
			}
		case done := <-f.lost:
			if hangUps == 0 && !signal.Ignored(syscall.SIGHUP) {
				sent = true
				f.deliver(syscall.SIGHUP, true)
			}
			close(done)
		case <-f.over:
			return
		}
	}
}

// deliver sends a signal, and with wait returns when it has been sent on.
func (f *forwarder) deliver(s syscall.Signal, wait bool) {
	f.send(int(s))
	if wait {
		// The reader of the channel has sent the signal on when it comes back for
		// more. 0 is no signal.
		f.send(0)
	}
}

// hangUp sends the program SIGHUP because its terminal is gone, unless it got one. It
// returns when that is sent, or the forwarding has ended.
func (f *forwarder) hangUp() {
	done := make(chan struct{})
	select {
	case f.lost <- done:
		<-done
	case <-f.over:
	}
}

// send sends a signal on. Before the program is started and when it has ended nothing takes it:
// where that lasts, as for a disk or a lock, a signal that asks for the end ends this process.
func (f *forwarder) send(n int) {
	var late <-chan time.Time
	s := syscall.Signal(n)
	if slices.Contains([]syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}, s) {
		timer := time.NewTimer(f.late)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case f.numbers <- n:
	case <-f.over:
	case <-late:
		f.console.suspend()
		f.end(s)
	}
}
