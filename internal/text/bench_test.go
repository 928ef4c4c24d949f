// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"testing"
)

// BenchmarkSplitter guards the claim that looking for the boundary costs the
// same for a chunk of any size and, while chunks end between characters, no
// copy.
func BenchmarkSplitter(b *testing.B) {
	chunk := bytes.Repeat([]byte("line of output\n"), 546)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	var s Splitter
	for b.Loop() {
		if len(s.Push(chunk)) != len(chunk) {
			b.Fatal("held back")
		}
	}
}

// BenchmarkDecode shows what text of one megabyte costs: clean, with a broken
// byte in every line, and guessed.
func BenchmarkDecode(b *testing.B) {
	for _, bm := range []struct {
		name, line string
		decode     func([]byte) string
	}{
		{"clean", "a line of output, sixty-four bytes with its newline at the end.\n", Decode},
		{"damaged", "a line of output, sixty-four bytes with its newline at the e\xff.\n", Decode},
		{"guessed", "a line of output, caf\xe9 with its newline and more at the end....\n", func(b []byte) string { return Guess(b).Decode(b) }},
	} {
		in := bytes.Repeat([]byte(bm.line), 1<<14)
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if bm.decode(in) == "" {
					b.Fatal("empty")
				}
			}
		})
	}
}
