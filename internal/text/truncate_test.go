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
		budget   Budget
		want     string
	}{
		{"row 34: short, 1 byte", short, Bytes(1), warning(4, 1, "…13 chars truncated…t")},
		{"row 34: short, 1 token", short, Tokens(1), warning(4, 1, "ex…3 tokens truncated…ut")},
		{"row 34: short, 10 tokens", short, Tokens(10), short},
		{"row 34: short, 20 bytes", short, Bytes(20), short},
		{"row 34: long, 5 tokens", long, Tokens(5), warning(15, 1, "this is an…10 tokens truncated… truncated")},
		{"row 34: long, 30 bytes", long, Bytes(30), warning(15, 1, "this is an exam…30 chars truncated…ld be truncated")},
		{"row 34: two lines, 10 tokens", two, Tokens(10), warning(21, 2, "this is an example o…11 tokens truncated…also some other line")},
		{"row 34: two lines, 30 bytes", two, Bytes(30), warning(21, 2, "this is an exam…51 chars truncated…some other line")},
		{"row 34: 3000 numbers, 20 tokens", numbers, Tokens(20), warning(3474, 3000, numbers[:40]+"…3454 tokens truncated…"+numbers[len(numbers)-40:])},
		{"exact fit", short, Bytes(14), short},
		{"empty, no budget", "", Tokens(0), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := FormatTruncated(tt.in, tt.budget); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestTruncateMiddle(t *testing.T) {
	emoji := strings.Repeat("😀", 10) + "\nsecond line with text\n"
	for _, tt := range []struct {
		name, in string
		budget   Budget
		want     string
	}{
		{"row 34: whole characters", emoji, Bytes(20), "😀😀…21 chars truncated…with text\n"},
		{"row 34: empty, no tokens", "", Tokens(0), "…0 tokens truncated…"},
		{"row 34: text, no tokens", short, Tokens(0), "…4 tokens truncated…"},
		{"no bytes", short, Bytes(0), "…14 chars truncated…"},
		{"zero budget", short, Budget{}, "…14 chars truncated…"},
		{"negative budget", short, Tokens(-3), "…4 tokens truncated…"},
		{"exact fit", short, Bytes(14), short},
		{"one over", short, Bytes(13), "exampl…1 chars truncated… output"},
		{"no character fits", "😀😀", Bytes(3), "…2 chars truncated…"},
		{"huge number of tokens", short, Tokens(math.MaxInt), short},
		{"bytes that are no text", strings.Repeat("\x80", 8), Bytes(4), "…8 chars truncated…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := TruncateMiddle(tt.in, tt.budget); got != tt.want {
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
		if got := LineCount(tt.in); got != tt.lines {
			t.Errorf("%q: %d lines, want %d", tt.in, got, tt.lines)
		}
	}
	if n := TokenCount(-1); n != 0 {
		t.Errorf("%d tokens in -1 bytes", n)
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add(strings.Repeat("😀é a\n", 9), 13, false)
	f.Add("", 0, true)
	f.Fuzz(func(t *testing.T, s string, n int, tokens bool) {
		n %= 1000
		budget := Bytes(n)
		limit := max(n, 0)
		if tokens {
			budget, limit = Tokens(n), 4*max(n, 0)
		}
		got := TruncateMiddle(s, budget)
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("%q became %q, which is not UTF-8", s, got)
		}
		if len(s) <= limit && limit > 0 {
			if got != s {
				t.Fatalf("%q fits %d bytes and became %q", s, limit, got)
			}
			return
		}
		unit := map[bool]string{true: " tokens truncated…", false: " chars truncated…"}[tokens]
		mark := strings.LastIndex(got, unit)
		start := strings.LastIndex(got[:mark], "…")
		head, tail := got[:start], got[mark+len(unit):]
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || len(head)+len(tail) > limit {
			t.Fatalf("%q with %d bytes became %q", s, limit, got)
		}
		if utf8.ValidString(s) && len(head)+len(tail) <= limit-2*utf8.UTFMax {
			t.Fatalf("%q with %d bytes became %q: too little kept", s, limit, got)
		}
		if len(s) > limit && !strings.HasSuffix(FormatTruncated(s, budget), "\n\n"+got) {
			t.Fatalf("the warning form of %q has another text", s)
		}
	})
}
