// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import "testing"

// BenchmarkCold is the first round of a protector with four watches: Hold, Finish, Release and Close.
func BenchmarkCold(b *testing.B) {
	p := newPlace(b)
	claims := p.watch(".git", ".codex", ".agents", ".sallyport")
	for b.Loop() {
		round(b, &Protector{State: p.state}, claims, true)
	}
}

// BenchmarkWarm is a later round of the same protector.
func BenchmarkWarm(b *testing.B) {
	p := newPlace(b)
	claims := p.watch(".git", ".codex", ".agents", ".sallyport")
	k := p.protector()
	for b.Loop() {
		round(b, k, claims, false)
	}
}

func round(b *testing.B, k *Protector, claims []Claim, ends bool) {
	b.Helper()
	h, err := k.Hold(claims)
	check(b, err)
	_, err = h.Finish()
	check(b, err)
	h.Release()
	if ends {
		check(b, k.Close())
	}
}
