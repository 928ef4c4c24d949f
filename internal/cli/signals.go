// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/signal"
	"sync"
)

// forwardSignals begins to send the signals that arrive here to the returned
// channel, in order, until stop is called. Signals that this process ignores,
// as under nohup(1), stay ignored. Stop waits until nothing is sent any more.
func forwardSignals() (numbers <-chan int, stop func()) {
	in, out, done := make(chan os.Signal, 32), make(chan int), make(chan struct{})
	for _, s := range forwarded() {
		if !signal.Ignored(s) {
			signal.Notify(in, s)
		}
	}
	send := func(n int) {
		select {
		case out <- n:
		case <-done:
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case s := <-in:
				send(number(s))
				if isStop(s) {
					// Whoever reads the channel has sent the signal on when it
					// comes back for more. 0 is no signal.
					send(0)
					stopSelf()
				}
			case <-done:
				return
			}
		}
	})
	return out, func() {
		signal.Stop(in)
		close(done)
		running.Wait()
	}
}
