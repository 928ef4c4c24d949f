// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"bytes"
	"slices"
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
		{"string cut by another", "\x1b]0;t\x1b[6na\x1b[1mb", "a\x1b[1mb"},
		{"long string cut by another", "\x1b]0;" + strings.Repeat("t", 2000) + "\x1b[6na", "a"},
		{"sequence cut by another", "\x1b[1\x1b[6na", "a"},
		{"sequence in a sequence", "\x1b[\x1b[6n6n", "6n"},
		{"question in a string", "\x1b]52;c;\x1b[6n?\x07", "?\x07"},
		{"question in a string of a device", "\x1bP+q\x1b[6n544e\x1b\\a", "544e\x1b\\a"},
		{"canceled", "\x1b[6\x18na", "na"},
		{"controls in a sequence", "\x1b[6\x7fna\x1b[6\nnb\x1b[6\x00nc\x1b\x7f[6nd", "\x7fna\nnb\x00nc\x7f[6nd"},
		{"C1", "a\xc2\x9b6nb\xc2\x90+q544e\xc2\x9cc\xc2\x85d", "a6nb+q544ecd"},
		{"C1 in eight bits", "a\x9b6nb\x90c", "a6nbc"},
		{"C1 joined by what is taken out", "a\xc2\x1b[6n\x9b6nb", "a\xc26nb"},
		{"C1 longer than it must be", "a\xc1\x9b6n\xe0\x82\x9b6nb", "a\xc16n\xe06nb"},
		{"Latin-1", "caf\xe9 \xa4", "caf\xe9 \xa4"},
		{"UTF-8", "äöü €👍\u00a0", "äöü €👍\u00a0"},
		{"controls", "\x00a\x05b\bc\v\f\x0e\x0f\x10d\x18\x1ae\x7f\a", "\x00ab\bc\v\f\x0e\x0f\x10de\x7f\a"},
		{"a long question", "a\x1b]52;" + strings.Repeat("c", 600) + ";?\x07b", "ab"},
		{"a string without an end", "a\x1b]0;title\nb", "a\nb"},
		{"a string longer than any picture", "a\x1bPq" + strings.Repeat("~", maxString) + "\x1b\\b", "ab"},
		{"a long sequence", "\x1b[" + strings.Repeat("1;", 300) + "mb", strings.Repeat("1;", 45) + "mb"},
		{"iTerm", "a\x1b]1337;ReportCellSize\x07b\x1b]1337;ReportVariable=eA==\x07c\x1b]1337;File=name=eA==:QUJD\x07d\x1b]1337;File=inline=1:QUJD\x07e", "abcd\x1b]1337;File=inline=1:QUJD\x07e"},
		{"allowed operations", "a\x1b]60\x07b\x1b]61;x\x07c\x1b]21;foreground=?\x07d\x1b]99;p=?;\x07e", "abcde"},
		{"keys that a program defines", "a\x1bP1;1|17/6c730d\x1b\\b", "ab"},
		{"to the terminal below a multiplexer", "a\x1bPtmux;\x1b\x1b[6n\x1b\\b", "a\x1b\\b"},
		{"printing", "a\x1b[5ib\x1b[?5ic", "abc"},
		{"the window", "a\x1b[3;0;0tb\x1b[8;1;1tc\x1b[2td", "abcd"},
		{"modes that are answered", "a\x1b[?2048hb\x1b[?1;2048hc\x1b[?1;25hd", "abc\x1b[?1;25hd"},
		{"a locked keyboard", "a\x1b[2hb\x1b[4hc", "ab\x1b[4hc"},
		{"answers in eight bits", "a\x1b Gb\x1b%@c\x1b%Gd", "abc\x1b%Gd"},
		{"fonts and colors asked", "a\x1b]50;?\x07b\x1b]10; ?\x07c\x1b]4;1;#fff\x07d", "abc\x1b]4;1;#fff\x07d"},
		{"links and progress", "\x1b]8;;https://x/?a=b\x1b\\x\x1b]8;;\x1b\\\x1b]9;4;1;50\x07", "\x1b]8;;https://x/?a=b\x1b\\x\x1b]8;;\x1b\\\x1b]9;4;1;50\x07"},
		{"pictures that are answered", "a\x1b_Gi=1,a=T;AA\x1b\\b\x1b_Gi=1,q=2,a=T;AA\x1b\\c", "ab\x1b_Gi=1,q=2,a=T;AA\x1b\\c"},
		{"pictures in files", "a\x1b_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\x1b\\b\x1b_Ga=T,t=t;eA==\x1b\\c", "abc"},
		{"the title of screen", "a\x1bktitle\x1b\\b", "a\x1bktitle\x1b\\b"},
		{"messages", "a\x1b^x\x1b\\b\x1bXy\x1b\\c", "abc"},
		{"a prefix in the middle", "a\x1b[1?2hb\x1b[1>cc", "abc"},
		{"unfinished", "a\x1b[6", "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := string(new(filter).pass([]byte(test.in))); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestFilterUnfinished: what has no end yet is not shown, in whatever pieces it comes.
func TestFilterUnfinished(t *testing.T) {
	const in = "a\x1b]0;t\x07\xe2\x82\xac\x1b[1mb\x1b[6nc\x1b(B"
	const want = "a\x1b]0;t\x07\xe2\x82\xac\x1b[1mbc\x1b(B"
	for n := 1; n <= len(in); n++ {
		var f filter
		var out []byte
		for piece := range slices.Chunk([]byte(in), n) {
			out = append(out, f.pass(piece)...)
			if !bytes.Equal(new(filter).pass(out), out) {
				t.Errorf("in pieces of %d bytes, %q is shown", n, out)
			}
		}
		if string(out) != want {
			t.Errorf("in pieces of %d bytes: %q, want %q", n, out, want)
		}
	}
}

// FuzzFilter: pieces are filtered as the whole, and what was filtered has nothing more to be taken
// out: no sequence is made of the parts beside another one.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"text", "a\x1b[6nb", "\x1b]11;?\x07", "\x1bP" + strings.Repeat("q", 600) + "\x1b\\\x1b[c",
		"\x1b\x1b\x1b[c\x05",
		"\xc2\x1b[6n\x9b6n", "\x1b[\x1b[6n6n", "\x1b]52;c;\x1b[6n?\x07", "\x1b_Ga=T;A\x1b\\",
		"\xe2\x82\xac\x9b",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		in = append(bytes.Clone(in), "\x18\n"...) // which end all that waits for its end
		whole := new(filter).pass(bytes.Clone(in))
		if cut = max(0, min(cut, len(in))); cut > 0 {
			var parts filter
			got := append(bytes.Clone(parts.pass(in[:cut])), parts.pass(in[cut:])...)
			if !bytes.Equal(got, whole) {
				t.Errorf("in pieces %q, whole %q", got, whole)
			}
		}
		if again := new(filter).pass(whole); !bytes.Equal(again, whole) {
			t.Errorf("%q became %q, and that %q", in, whole, again)
		}
		if text := in[:len(in)-2]; plain(text) && string(whole) != string(text)+"\n" {
			t.Errorf("%q became %q", in, whole)
		}
		if len(whole) > len(in) {
			t.Errorf("%q grew to %q", in, whole)
		}
	})
}
