// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package headtail

import "testing"

const benchChunk = 4096

// BenchmarkCopy is the measure for BenchmarkCapture: the same chunks copied
// into a plain array as large as the part that a Capture writes over and over.
func BenchmarkCopy(b *testing.B) {
	chunk, dst := make([]byte, benchChunk), make([]byte, DefaultBytes/2)
	b.SetBytes(benchChunk)
	i := 0
	for b.Loop() {
		i += copy(dst[i:], chunk)
		if i == len(dst) {
			i = 0
		}
	}
}

// BenchmarkCapture guards the claim that capturing runs at no less than 0.3 of
// the rate of a bare copy loop and without allocation, however much is printed.
func BenchmarkCapture(b *testing.B) {
	chunk, c := make([]byte, benchChunk), NewCapture(DefaultLimit())
	for range 1024 {
		c.Write(Stdout, chunk)
	}
	b.SetBytes(benchChunk)
	b.ReportAllocs()
	for b.Loop() {
		c.Write(Stdout, chunk)
	}
}

// BenchmarkCaptureAlternating is the worst case for the order of arrival: the
// stream changes with every chunk.
func BenchmarkCaptureAlternating(b *testing.B) {
	chunk, c := make([]byte, benchChunk), NewCapture(DefaultLimit())
	b.SetBytes(benchChunk)
	b.ReportAllocs()
	s := Stdout
	for b.Loop() {
		c.Write(s, chunk)
		s ^= 1
	}
}

// BenchmarkIdle guards the claim that a process that prints nothing costs no
// buffer.
func BenchmarkIdle(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		c := NewCapture(DefaultLimit())
		if c.Total(Stdout) != 0 {
			b.Fatal("not empty")
		}
	}
}
