// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/run/output"
)

// Floods has others print without end, with no one who reads it, until the test ends. It returns how long
// the turn of each is.
func Floods(t testing.TB) time.Duration {
	var begun, work sync.WaitGroup
	over := t.Context().Done()
	longAgo := time.Now().Add(-time.Hour)
	for range runtime.GOMAXPROCS(0) + 1 { // more than there are turns, so that one waits always
		begun.Add(1)
		work.Go(func() {
			var p output.Pace
			p.Wait(longAgo, 1<<20)
			begun.Done()
			for {
				select {
				case <-over:
					return
				default:
					p.Wait(longAgo, 1<<20)
				}
			}
		})
	}
	t.Cleanup(work.Wait)
	begun.Wait()
	return output.MaxPause
}
