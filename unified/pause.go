// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"sync"
	"time"
)

// A pauseClock counts the time of pauses. The zero pauseClock is ready.
type pauseClock struct {
	mu      sync.Mutex
	open    int
	since   time.Time     // when open became more than 0
	past    time.Duration // of pauses that are over
	resumed chan struct{} // closed when open becomes 0; nil while it is
}

// pause begins a pause. The returned function ends it, once.
func (c *pauseClock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == 0 {
		c.since, c.resumed = time.Now(), make(chan struct{})
	}
	c.open++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open--; c.open == 0 {
			c.past += time.Since(c.since)
			close(c.resumed)
			c.resumed = nil
		}
	})
}

// total returns the time of all pauses so far.
func (c *pauseClock) total() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == 0 {
		return c.past
	}
	return c.past + time.Since(c.since)
}

// wait blocks while there is a pause.
func (c *pauseClock) wait(ctx context.Context) error {
	for {
		c.mu.Lock()
		resumed := c.resumed
		c.mu.Unlock()
		if resumed == nil {
			return nil
		}
		select {
		case <-resumed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
