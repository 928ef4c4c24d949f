// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestStartedFirst: no output is told before the start of its command, also while others start.
func TestStartedFirst(t *testing.T) {
	r := newRunner(t, sandbox.FullAccess())
	var mu sync.Mutex
	started := map[string]bool{}
	r.Events = event.SinkFunc(func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Body.(type) {
		case event.Started:
			started[e.Run] = true
		case event.Output:
			if !started[e.Run] {
				t.Error("output came before the start")
			}
		}
	})
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			for range 50 {
				if _, err := r.Run(t.Context(), Command("echo", "x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	runs.Wait()
}
