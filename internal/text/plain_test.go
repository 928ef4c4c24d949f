// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// plainOf returns what is left of output that comes in pieces of a size.
func plainOf(t testing.TB, output string, size int) string {
	var p Plain
	var out []byte
	idle := 0
	for at := 0; at < len(output); {
		n, text, same := p.Next([]byte(output[at:min(len(output), at+size)]))
		if idle++; n > 0 {
			idle = 0
		}
		if idle > 2 {
			t.Fatal("it takes nothing")
		}
		at += n
		if same && (len(text) > n || output[at-len(text):at] != string(text)) {
			t.Fatalf("%q are not the bytes before %d", text, at)
		}
		out = append(out, text...)
	}
	return string(out)
}

func TestPlain(t *testing.T) {
	long := strings.Repeat("1;", maxPlainControl)
	for _, c := range []struct{ name, output, want string }{
		{"text", "plain\ttext é 世界\n", "plain\ttext é 世界\n"},
		{"colors", "\x1b[2mready in \x1b[0m\x1b[1m129\x1b[22m ms\x1b[38;2;1;2;3m!\x1b[m", "ready in 129 ms!"},
		{"colors with colons", "\x1b[38:2::1:2:3mred\x1b[4:3m", "red"},
		{"modes", "\x1b[?2004h$ \x1b[?2004l\x1b=\x1b>\x1b7\x1b8\x1b[!p\x1b[>4;2m", "$ "},
		{"line ends", "a\r\nb\r\r\nc\n", "a\nb\nc\n"},
		{"written anew", "10%\r20%\rdone\n", "10%\n20%\ndone\n"},
		{"a title", "\x1b]0;user@host: ~\a$ \x1b]2;other\x1b\\x", "$ x"},
		{"a link", "\x1b]8;;http://a/b\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"strings", "a\x1bPq#0;2\x1b\\b\x1b_Gi=1\x1b\\c\x1bkscreen\x1b\\d\x1b^x\x1b\\e\x1bXx\x1b\\f", "abcdef"},
		{"a string without an end", "\x1b]0;title\nnext", "\nnext"},
		{"a string that another sequence ends", "\x1b]0;title\x1b[31mred", "red"},
		{"moves within a line", "Local:\x1b[2Chttp\x1b[20Gx\x1b[Iy\x1b[1Gz", "Local:  http x y\nz"},
		{"moves to other lines", "a\x1b[2;1Hb\x1b[Ec\x1b[3dd\x1bDe\x1bMf", "a\nb\nc\nd\ne\nf"},
		{"a far move", "a\x1b[99999Cb", "a" + strings.Repeat(" ", maxPlainSpaces) + "b"},
		{"erasing", "a\x1b[K\x1b[2J\x1b[3Xb", "ab"},
		{"character sets", "\x1b(Ba\x1b)0b\x1b#8c\x1b%G", "abc"},
		{"controls", "a\x00\a\b\x0e\x0f\x7fb", "ab"},
		{"controls of C1", "a\u009b31mb\u009d0;t\ac\u0085d", "abc\nd"},
		{"characters like them", "\u00a0©é", "\u00a0©é"},
		{"half a character", "\xc2a\xc2", "\xc2a"},
		{"no character", "\xff\xfe", "\xff\xfe"},
		{"cut off by a newline", "\x1b[31\nm", "\nm"},
		{"cut off by another", "\x1b[3\x1b[1mx\x1b\x1b[1my", "xy"},
		{"too long", "\x1b[" + long + "x", long[maxPlainControl:] + "x"},
		{"an end that comes later", "a\x1b[3", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, len(c.output)} {
				if got := plainOf(t, c.output, size); got != c.want {
					t.Errorf("in pieces of %d: %q, want %q", size, got, c.want)
				}
			}
		})
	}
}

// FuzzPlain: what is left depends on no piece, and has no controls but tabs and newlines.
func FuzzPlain(f *testing.F) {
	f.Add([]byte("a\x1b[31mb\r\n\x1b]0;t\a\x1b[5C\xc2\x9b1mx"))
	f.Add([]byte("\x1b\x1b[\x1bP\x1b\\\xc2\x1b"))
	f.Fuzz(func(t *testing.T, output []byte) {
		whole := plainOf(t, string(output), max(len(output), 1))
		if one := plainOf(t, string(output), 1); one != whole {
			t.Errorf("byte by byte %q, whole %q", one, whole)
		}
		if !utf8.Valid(output) {
			return
		}
		if i := bytes.IndexFunc([]byte(whole), func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
		}); i >= 0 {
			t.Errorf("a control at %d of %q", i, whole)
		}
	})
}
