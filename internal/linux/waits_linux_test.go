// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestCloseIsBounded: closing waits for what a command has left, and not for ever.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, cancel := context.WithTimeout(t.Context(), closeTime)
		defer cancel()
		broken, over := errors.New("broken"), make(chan struct{})
		if err := begin(late, "late", func() error { return broken })(); !errors.Is(err, broken) {
			t.Errorf("error %v, want that of the function", err)
		}
		start := time.Now()
		wait := begin(late, "late", func() error { <-over; return broken })
		if err := wait(); err == nil || err.Error() != "late" || time.Since(start) != closeTime {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
		close(over)
		if err := wait(); err != nil {
			t.Errorf("it is reported again: %v", err)
		}
	})
}
