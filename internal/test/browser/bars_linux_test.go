// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"slices"
	"testing"
	"time"
)

// report logs the median of what was measured beside its bar, and fails the test only where that is far
// above it: a busy machine says nothing about the product.
func report(t *testing.T, what string, bar time.Duration, all []time.Duration) {
	t.Helper()
	slices.Sort(all)
	median := all[len(all)/2]
	t.Logf("bar: %s: median %v of %d (%v to %v), bar %v", what, median, len(all), all[0], all[len(all)-1], bar)
	if limit := max(25*bar, 30*time.Second); all[0] > limit {
		t.Errorf("%s takes %v at best, the bar is %v", what, all[0], bar)
	}
}
