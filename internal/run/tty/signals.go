// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Signals sends the signals that this process gets on to a program.
type Signals struct {
	// Numbers are the signals for the program, in order of their arrival. 0 is none.
	Numbers chan int
	// Ready is closed when all signals are caught.
	Ready chan struct{}

	arrived chan os.Signal
	stopped chan struct{}        // holds a token when the program was stopped
	lost    chan chan<- struct{} // the terminal is gone; closes what it gets when the program knows
	halts   chan halt
	looking atomic.Bool // a goroutine looks
	console *Console    // suspended before a stop
	told    bool        // the program knows that this process continued
	over    chan struct{}
	running sync.WaitGroup
	end     func(syscall.Signal) // ends this process
	late    time.Duration        // how long a signal waits for the program before that
	stop    func(syscall.Signal) // stops the job as a signal does
}

// ForwardSignals begins to catch signals. It returns at once: that takes the
// runtime about a millisecond, in which flags and files can be checked. Signals that this
// process ignores, as under nohup(1), stay ignored.
//
// A signal that is not caught yet is lost or ends the process, so no program may begin
// before ready is closed: its output makes people send signals.
//
// A program with a terminal of its own gets no SIGWINCH from here.
func ForwardSignals(c *Console) *Signals {
	f := newSignals(c)
	f.begin()
	return f
}

func newSignals(c *Console) *Signals {
	return &Signals{
		arrived: make(chan os.Signal, 32), Numbers: make(chan int),
		Ready: make(chan struct{}), over: make(chan struct{}), stopped: make(chan struct{}, 1),
		lost: make(chan chan<- struct{}), halts: make(chan halt), console: c,
		end: Die, late: 2 * time.Second, stop: stopJob,
	}
}

// begin begins to catch signals.
func (f *Signals) begin() {
	c := f.console
	c.gate.behind = f.draws
	f.running.Go(func() {
		for _, s := range forwarded() {
			if !(c.Own && s == resizeSignal) {
				Notify(f.arrived, s)
			}
		}
		close(f.Ready)
		f.look()
		f.forward()
	})
}

// AddPipe sends SIGPIPE on as well: a program whose output this process writes ends with its reader, as one
// that writes itself.
func (f *Signals) AddPipe() { Notify(f.arrived, syscall.SIGPIPE) }

// Close ends the forwarding. With last this process ends, and signals stay caught: to
// change that takes as long as to begin.
func (f *Signals) Close(last bool) {
	close(f.over)
	f.running.Wait()
	if !last {
		signal.Stop(f.arrived)
	}
}

// Notify has c receive those of the signals that this process does not ignore.
func Notify(c chan<- os.Signal, signals ...os.Signal) {
	for _, s := range signals {
		if !ignored(s) {
			catchable(s)
			signal.Notify(c, s)
		}
	}
}

// UntilSignal returns a context that ends with one of the signals that this process does not ignore. Stop
// must be called.
func UntilSignal(ctx context.Context, signals ...os.Signal) (until context.Context, stop func()) {
	until, stop = context.WithCancel(ctx)
	arrived := make(chan os.Signal, 1)
	Notify(arrived, signals...)
	go func() {
		select {
		case <-arrived:
			stop()
		case <-until.Done():
		}
		signal.Stop(arrived)
	}()
	return until, stop
}

// Die ends this process by a signal, without a core dump. It returns where that is not possible.
func Die(s syscall.Signal) { die(s) }

// forward sends until it is over.
func (f *Signals) forward() {
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
			if f.told && n == continueSignal {
				f.told = false
				continue
			}
			f.deliver(n, n == stopSignal || n == syscall.SIGHUP)
			if n == stopSignal && !f.console.asking.Load() {
				f.awaitStop()
				f.stopJob(stopSignal)
			}
		case <-f.stopped:
			if f.console.Present() {
				f.stopJob(stopSignal)
			}
		case h := <-f.halts:
			if f.console.background() {
				f.deliver(h.by, true)
				f.awaitStop()
				f.stopJob(h.by)
			}
			close(h.done)
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

// Stopped says that the program was stopped. It returns at once.
func (f *Signals) Stopped() {
	select {
	case f.stopped <- struct{}{}:
	default:
	}
}

// awaitStop gives a program that was asked to stop the time to leave the terminal in order. One
// that does not stop, or of which that is not known, does not keep the job from stopping.
func (f *Signals) awaitStop() {
	const moment = time.Second
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-f.stopped:
	case <-timer.C:
	case <-f.over:
	}
}

// stopJob stops the job that this process belongs to until its shell continues it, and has the
// program go on then. Where no shell could, nothing stops, and the program goes on at once.
func (f *Signals) stopJob(by syscall.Signal) {
	f.console.suspend()
	f.stop(by)
	f.console.resume()
	select {
	case <-f.stopped: // from before
	default:
	}
	f.told = true
	f.deliver(continueSignal, false)
	f.look()
}

// deliver sends a signal, and with wait returns when it has been sent on.
func (f *Signals) deliver(s syscall.Signal, wait bool) {
	f.send(int(s))
	if wait {
		// The reader of the channel has sent the signal on when it comes back for
		// more. 0 is no signal.
		f.send(0)
	}
}

// hangUp sends the program SIGHUP because its terminal is gone, unless it got one. It
// returns when that is sent, or the forwarding has ended.
func (f *Signals) hangUp() {
	done := make(chan struct{})
	select {
	case f.lost <- done:
		<-done
	case <-f.over:
	}
}

// send sends a signal on. Before the program is started and when it has ended nothing takes it:
// where that lasts, as for a disk or a lock, a signal that asks for the end ends this process.
func (f *Signals) send(n int) {
	var late <-chan time.Time
	s := syscall.Signal(n)
	if slices.Contains([]syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP,
		syscall.SIGQUIT}, s) {
		timer := time.NewTimer(f.late)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case f.Numbers <- n:
	case <-f.over:
	case <-late:
		f.console.suspend()
		f.end(s)
	}
}
