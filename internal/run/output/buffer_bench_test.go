// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

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
	chunk, c := make([]byte, benchChunk), NewCapture(Limit{Bytes: DefaultBytes})
	for range 1024 {
		c.Write(executor.Stdout, chunk)
	}
	b.SetBytes(benchChunk)
	b.ReportAllocs()
	for b.Loop() {
		c.Write(executor.Stdout, chunk)
	}
}

// BenchmarkCaptureAlternating is the worst case for the order of arrival: the
// stream changes with every chunk.
func BenchmarkCaptureAlternating(b *testing.B) {
	chunk, c := make([]byte, benchChunk), NewCapture(Limit{Bytes: DefaultBytes})
	b.SetBytes(benchChunk)
	b.ReportAllocs()
	s := executor.Stdout
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
		c := NewCapture(Limit{Bytes: DefaultBytes})
		if c.Snapshot().Combined.Total != 0 {
			b.Fatal("not empty")
		}
	}
}

// pushBytes is what one round of BenchmarkPush writes.
const pushBytes = 1 << 30

// BenchmarkPush measures a round of 1 GiB in chunks of 4 KiB, with the buffers grown
// anew in every round, against a loop that copies the same chunks into as much memory
// as is written over and over. Push must have at least 0.3 of the copy's rate.
func BenchmarkPush(b *testing.B) {
	chunk := make([]byte, benchChunk)
	b.Run("push", func(b *testing.B) {
		b.SetBytes(pushBytes)
		for b.Loop() {
			c := NewBuffer(DefaultBytes)
			for range pushBytes / benchChunk {
				c.push(chunk)
			}
		}
	})
	b.Run("capture", func(b *testing.B) {
		b.SetBytes(pushBytes)
		for b.Loop() {
			c := NewCapture(Limit{Bytes: DefaultBytes})
			for range pushBytes / benchChunk {
				c.Write(executor.Stdout, chunk)
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(pushBytes)
		for b.Loop() {
			dst := make([]byte, DefaultBytes/2)
			for i, n := 0, 0; n < pushBytes; n += benchChunk {
				if i += copy(dst[i:], chunk); i == len(dst) {
					i = 0
				}
			}
		}
	})
}

// TestPushAllocatesNothing holds once the memory has grown, whatever arrives.
func TestPushAllocatesNothing(t *testing.T) {
	chunk := make([]byte, benchChunk)
	for _, tt := range []struct {
		name  string
		size  int
		other bool // every second chunk is of the other stream
	}{
		{"chunks of 4 KiB", benchChunk, false},
		{"single bytes", 1, false},
		{"two streams", benchChunk, true},
		{"two streams byte by byte", 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, b, s := NewCapture(Limit{Bytes: 64 << 10}), NewBuffer(64<<10), executor.Stdout
			push := func() {
				c.Write(s, chunk[:tt.size])
				b.push(chunk[:tt.size])
				if tt.other {
					s ^= 1
				}
			}
			for range 1 << 18 {
				push()
			}
			if n := testing.AllocsPerRun(1<<16, push); n != 0 {
				t.Errorf("%v allocations per push", n)
			}
		})
	}
}
