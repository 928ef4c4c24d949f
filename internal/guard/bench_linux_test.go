// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"testing"
	"time"
)

// Claims, on two slow cores: the first Hold of a keeper makes three placeholders in
// 400 us on ext4 and in 250 us in memory, journal, inotify and goroutine included;
// the next one of the same keeper takes under 20 us. ext4 is up to ten times slower
// for some seconds after many inodes were removed, which a loop like this does.

// BenchmarkCold is the first Hold of a keeper with three placeholders to make and a
// watch, in a state directory that was used before.
func BenchmarkCold(b *testing.B) {
	p := newPlace(b)
	claims := append(p.covers(".codex", ".agents", ".sallyport"), p.watch(".git")...)
	check(b, wholeRun(&Keeper{State: p.state}, p.work, stands))
	for b.Loop() {
		k := &Keeper{State: p.state}
		h, err := k.Hold(claims)
		b.StopTimer()
		if err != nil || len(h.Placeholders()) != 3 {
			b.Fatal(err)
		}
		check(b, k.Close())
		b.StartTimer()
	}
}

// BenchmarkWarm is a Hold that finds its placeholders, and its Release.
func BenchmarkWarm(b *testing.B) {
	p := newPlace(b)
	claims := append(p.covers(".codex", ".agents", ".sallyport"), p.watch(".git")...)
	k := &Keeper{State: p.state}
	h, err := k.Hold(claims)
	check(b, err)
	h.Release()
	var spent time.Duration
	for b.Loop() {
		start := time.Now() // stopping the benchmark's timer takes longer than this
		h, err := k.Hold(claims)
		spent += time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		h.Release()
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/Hold")
	check(b, k.Close())
}

// BenchmarkWarmRound is a whole round: Hold, Finish and Release.
func BenchmarkWarmRound(b *testing.B) {
	p := newPlace(b)
	claims := append(p.covers(".codex", ".agents", ".sallyport"), p.watch(".git")...)
	k := &Keeper{State: p.state}
	for b.Loop() {
		h, err := k.Hold(claims)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Finish(); err != nil {
			b.Fatal(err)
		}
		h.Release()
	}
	check(b, k.Close())
}

// BenchmarkClose ends a keeper with three placeholders.
func BenchmarkClose(b *testing.B) {
	p := newPlace(b)
	claims := p.covers(".codex", ".agents", ".sallyport")
	for b.Loop() {
		b.StopTimer()
		k := &Keeper{State: p.state}
		_, err := k.Hold(claims)
		check(b, err)
		b.StartTimer()
		check(b, k.Close())
	}
}
