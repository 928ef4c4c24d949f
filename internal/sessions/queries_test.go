// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"bytes"
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"text", "a\r\nb\tü", "a\r\nb\tü"},
		{"colors", "\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"},
		{"modes", "\x1b[?1049h\x1b[?25l\x1b[>1u\x1b[>4;2m\x1b(B\x1b7", "\x1b[?1049h\x1b[?25l\x1b[>1u\x1b[>4;2m\x1b(B\x1b7"},
		{"type", "a\x1b[cb\x1b[>0cc\x1b[=cd\x1bZe\x05f", "abcdef"},
		{"status", "a\x1b[6nb\x1b[?6nc\x1b[>2n", "abc\x1b[>2n"},
		{"modes asked", "a\x1b[?2026$pb\x1b[2$w\x1b[!p", "ab\x1b[!p"},
		{"version", "a\x1b[>0qb\x1b[2 q", "ab\x1b[2 q"},
		{"keys", "a\x1b[?ub\x1b[?4mc\x1b[u", "abc\x1b[u"},
		{"window", "a\x1b[14tb\x1b[18t\x1b[22;0t", "ab\x1b[22;0t"},
		{"parameters", "a\x1b[xb\x1b[1;1;1;1;1;1*y\x1b[1;2$x", "ab\x1b[1;2$x"},
		{"title", "\x1b]0;what?\x07a\x1b]2;t\x1b\\b", "\x1b]0;what?\x07a\x1b]2;t\x1b\\b"},
		{"colors asked", "a\x1b]11;?\x07b\x1b]4;1;?\x1b\\c", "abc"},
		{"clipboard", "a\x1b]52;c;?\x07b\x1b]52;c;eA==\x07", "ab\x1b]52;c;eA==\x07"},
		{"settings asked", "a\x1bP$qm\x1b\\b\x1bP+q544e\x1b\\c", "abc"},
		{"picture", "\x1bPq" + strings.Repeat("~", 2000) + "\x1b\\a\x1b[6nb", "\x1bPq" + strings.Repeat("~", 2000) + "\x1b\\ab"},
		{"picture asked", "a\x1b_Gi=1,a=q;AAAA\x1b\\b\x1b_Ga=T;AAAA\x1b\\", "ab\x1b_Ga=T;AAAA\x1b\\"},
		{"string cut by another", "\x1b]0;t\x1b[6na\x1b[1mb", "\x1b]0;ta\x1b[1mb"},
		{"long string cut by another", "\x1b]0;" + strings.Repeat("t", 2000) + "\x1b[6na", "\x1b]0;" + strings.Repeat("t", 2000) + "a"},
		{"sequence cut by another", "\x1b[1\x1b[6na", "\x1b[1a"},
		{"canceled", "\x1b[6\x18na", "\x1b[6\x18na"},
		{"unfinished", "a\x1b[6", "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := string(new(filter).pass([]byte(test.in))); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// FuzzFilter: pieces are filtered as the whole, what has no controls is as before, and what was
// filtered asks nothing.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{"text", "a\x1b[6nb", "\x1b]11;?\x07", "\x1bP" + strings.Repeat("q", 600) + "\x1b\\\x1b[c", "\x1b\x1b\x1b[c\x05"} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		whole := new(filter).pass(in)
		if cut = max(0, min(cut, len(in))); cut > 0 {
			var parts filter
			got := append(parts.pass(in[:cut]), parts.pass(in[cut:])...)
			if !bytes.Equal(got, whole) {
				t.Errorf("in pieces %q, whole %q", got, whole)
			}
		}
		if !bytes.ContainsAny(in, "\x1b\x05") && !bytes.Equal(whole, in) {
			t.Errorf("%q became %q", in, whole)
		}
		if len(whole) > len(in) {
			t.Errorf("%q grew to %q", in, whole)
		}
		if bytes.Contains(in, []byte("\x1b[6n")) && !bytes.ContainsAny(in, "]P_^X\x18\x1a") && bytes.Contains(whole, []byte("\x1b[6n")) {
			t.Errorf("%q asks in %q", whole, in)
		}
	})
}
