// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A forwarder hands the signals that arrive here on to a command.
type forwarder struct {
	arrived chan os.Signal
	numbers chan int
	ready   chan struct{}        // closed when all signals are listened for
	lost    chan chan<- struct{} // the terminal is gone; closes what it gets when the command knows
	console *console             // suspended before a stop; nil without a terminal to suspend
	over    chan struct{}
	running sync.WaitGroup
}

// forwardSignals begins to listen for signals. It returns at once: listening takes the
// runtime about a millisecond, in which flags and files can be checked. Signals that this
// process ignores, as under nohup(1), stay ignored.
//
// Until the runtime is told to listen it throws some signals away, and ends the
// process for the others. ready tells when it listens for all. No command may begin
// before: what it says makes people send signals.
//
// With a console the command has a terminal of its own: its size is not told by a
// signal. Nil is none.
func forwardSignals(c *console) *forwarder {
	f := &forwarder{
		arrived: make(chan os.Signal, 32), numbers: make(chan int),
		ready: make(chan struct{}), over: make(chan struct{}),
		lost: make(chan chan<- struct{}), console: c,
	}
	f.running.Go(func() {
		for _, s := range forwarded() {
			if !signal.Ignored(s) && !(c != nil && isResize(s)) {
				signal.Notify(f.arrived, s)
			}
		}
		close(f.ready)
		f.forward()
	})
	return f
}

// channel returns the numbers of the signals, in order of their arrival.
func (f *forwarder) channel() <-chan int { return f.numbers }

// stop ends the forwarding. The listening goes on, which costs nothing, while to
// stop the runtime would take as long as to start it: unless last is false, this is
// the end of the process.
func (f *forwarder) stop(last bool) {
	close(f.over)
	f.running.Wait()
	if !last {
		signal.Stop(f.arrived)
	}
}

// forward sends until it is over.
func (f *forwarder) forward() {
	hangUps, told := 0, false
	for {
		select {
		case s := <-f.arrived:
			if s == syscall.SIGHUP {
				if hangUps++; told && hangUps == 1 {
					continue // the command has heard of this one
				}
			}
			// The end of input comes after a hang-up, and a stop after the command's own.
			f.deliver(number(s), isStop(s) || s == syscall.SIGHUP)
			if isStop(s) {
				f.console.suspend()
				stopSelf()
			}
		case done := <-f.lost:
			if hangUps == 0 && !signal.Ignored(syscall.SIGHUP) {
				told = true
				f.deliver(number(syscall.SIGHUP), true)
			}
			close(done)
		case <-f.over:
			return
		}
	}
}

// deliver sends a signal, and with wait returns when it has been sent on.
func (f *forwarder) deliver(n int, wait bool) {
	f.send(n)
	if wait {
		// Whoever reads the channel has sent the signal on when it comes back for
		// more. 0 is no signal.
		f.send(0)
	}
}

// hangUp tells the command that its terminal is gone, unless it has been told. It
// returns when the command knows, or it is over.
func (f *forwarder) hangUp() {
	done := make(chan struct{})
	select {
	case f.lost <- done:
		<-done
	case <-f.over:
	}
}

func (f *forwarder) send(n int) {
	select {
	case f.numbers <- n:
	case <-f.over:
	}
}
