// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"slices"
	"time"
)

// A Variant is one way to do the work.
type Variant struct {
	Name string
	Run  func() error
}

// onceEnv, if set, makes one round of all: the benchmarks work, and their figures say nothing.
const onceEnv = "SALLYPORT_BENCH_ONCE"

// OnlyOnce reports whether benchmarks are to make one round.
func OnlyOnce() bool { return os.Getenv(onceEnv) != "" }

// Rounds runs every variant once per round, beginning with another one each
// time, after one round that does not count. The result has a row per variant.
func Rounds(n int, variants []Variant) ([][]time.Duration, error) {
	return RoundsBetween(n, variants, nil)
}

// RoundsBetween does the same and calls between before each run, outside of what is
// measured. Nil does nothing.
func RoundsBetween(n int, variants []Variant, between func() error) ([][]time.Duration, error) {
	if OnlyOnce() {
		n = 1
	}
	times := make([][]time.Duration, len(variants))
	for round := -1; round < n; round++ {
		for i := range variants {
			k := (i + round + 1) % len(variants)
			if between != nil {
				if err := between(); err != nil {
					return nil, err
				}
			}
			start := time.Now()
			if err := variants[k].Run(); err != nil {
				return nil, &VariantError{Name: variants[k].Name, Err: err}
			}
			if round >= 0 {
				times[k] = append(times[k], time.Since(start))
			}
		}
	}
	return times, nil
}

// A VariantError is a variant that failed, so that nothing was measured.
type VariantError struct {
	Name string
	Err  error
}

func (e *VariantError) Error() string { return "bench: " + e.Name + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *VariantError) Unwrap() error { return e.Err }

// Ratio is the median of a/b inside the rounds.
func Ratio(a, b []time.Duration) float64 {
	r := make([]float64, 0, len(a))
	for i := range a {
		r = append(r, float64(a[i])/float64(b[i]))
	}
	return Median(r)
}

// Median returns the middle value; 0 for none.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

// Middle is the median of durations.
func Middle(v []time.Duration) time.Duration {
	f := make([]float64, len(v))
	for i := range v {
		f[i] = float64(v[i])
	}
	return time.Duration(Median(f))
}
