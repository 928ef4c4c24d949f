// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

// A Budget is how many bytes of an output anything may hold: what is beyond it is counted, and goes
// nowhere. The zero Budget is without a limit.
type Budget struct {
	most, used int64
}

// NewBudget returns a Budget of so many bytes; zero and negative mean that there is no limit.
func NewBudget(most int64) Budget { return Budget{most: max(most, 0)} }

// Take takes the next n bytes, and returns how many of them are within the Budget.
func (b *Budget) Take(n int) int {
	if b.most == 0 {
		return n
	}
	within := min(int64(n), b.most-b.used)
	b.used += within
	return int(within)
}
