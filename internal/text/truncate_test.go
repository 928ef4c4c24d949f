// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	short = "example output"
	long  = "this is an example of a long output that should be truncated"
	two   = long + "\nalso some other line"
)

// TestFormatTruncated has the rows of acceptance row 34 that carry a warning.
func TestFormatTruncated(t *testing.T) {
	var seq strings.Builder
	for i := range 3000 {
		fmt.Fprintln(&seq, i+1)
	}
	numbers := seq.String()
	warning := func(tokens, lines int, text string) string {
		return fmt.Sprintf("Warning: truncated output (original token count: %d)\nTotal output lines: %d\n\n%s", tokens, lines, text)
	}
	for _, tt := range []struct {
		name, in string
		tokens   int
		want     string
	}{
		{"row 34: short, 1 token", short, 1, warning(4, 1, "ex…3 tokens truncated…ut")},
		{"row 34: short, 10 tokens", short, 10, short},
		{"row 34: long, 5 tokens", long, 5, warning(15, 1, "this is an…10 tokens truncated… truncated")},
		{"row 34: two lines, 10 tokens", two, 10, warning(21, 2, "this is an example o…11 tokens truncated…also some other line")},
		{"row 34: 3000 numbers, 20 tokens", numbers, 20, warning(3474, 3000, numbers[:40]+"…3454 tokens truncated…"+numbers[len(numbers)-40:])},
		{"empty, no budget", "", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := FormatTruncated(tt.in, tt.tokens); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestTruncateMiddle(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		tokens   int
		want     string
	}{
		{"row 34: whole characters", strings.Repeat("😀", 10) + "\nsecond line with text\n", 5, "😀😀…11 tokens truncated…with text\n"},
		{"row 34: empty, no tokens", "", 0, "…0 tokens truncated…"},
		{"row 34: text, no tokens", short, 0, "…4 tokens truncated…"},
		{"fewer than no tokens", short, -3, "…4 tokens truncated…"},
		{"exact fit", short[:12], 3, short[:12]},
		{"one over", short[:13], 3, "exampl…1 tokens truncated… outpu"},
		{"no character fits", "😀é", 1, "…1 tokens truncated…é"},
		{"huge number of tokens", short, math.MaxInt, short},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := TruncateMiddle(tt.in, tt.tokens); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	for _, tt := range []struct {
		in            string
		tokens, lines int
	}{
		{"", 0, 0}, {"a", 1, 1}, {"abcd", 1, 1}, {"abcde", 2, 1}, {"a\n", 1, 1}, {"a\nb", 1, 2}, {"\n\n", 1, 2},
	} {
		if got := TokenCount(len(tt.in)); got != tt.tokens {
			t.Errorf("%q: %d tokens, want %d", tt.in, got, tt.tokens)
		}
		if got := lineCount(tt.in); got != tt.lines {
			t.Errorf("%q: %d lines, want %d", tt.in, got, tt.lines)
		}
	}
	if n := TokenCount(-1); n != 0 {
		t.Errorf("%d tokens in -1 bytes", n)
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add(strings.Repeat("😀é a\n", 9), 3)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, s string, tokens int) {
		tokens %= 1000
		limit := 4 * max(tokens, 0)
		got := TruncateMiddle(s, tokens)
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("%q became %q, which is not UTF-8", s, got)
		}
		if len(s) <= limit && limit > 0 {
			if got != s {
				t.Fatalf("%q fits %d bytes and became %q", s, limit, got)
			}
			return
		}
		const unit = " tokens truncated…"
		mark := strings.LastIndex(got, unit)
		start := strings.LastIndex(got[:mark], "…")
		head, tail := got[:start], got[mark+len(unit):]
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || len(head)+len(tail) > limit {
			t.Fatalf("%q with %d bytes became %q", s, limit, got)
		}
		if utf8.ValidString(s) && len(head)+len(tail) <= limit-2*utf8.UTFMax {
			t.Fatalf("%q with %d bytes became %q: too little kept", s, limit, got)
		}
		if len(s) > limit && !strings.HasSuffix(FormatTruncated(s, tokens), "\n\n"+got) {
			t.Fatalf("the warning form of %q has another text", s)
		}
	})
}
