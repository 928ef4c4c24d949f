// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for _, test := range []struct{ name, text, word, line, lines string }{
		{"empty", "", `""`, "", ""},
		{"a path", `/w/a b's "c"\d`, `/w/a b's "c"\d`, `/w/a b's "c"\d`, `/w/a b's "c"\d`},
		{"letters and signs", "é日本…\ufffd👍", "é日本…\ufffd👍", "é日本…\ufffd👍", "é日本…\ufffd👍"},
		{"C0", "a\x1b]0;x\ab", `"a\x1b]0;x\ab"`, `a\x1b]0;x\ab`, `a\x1b]0;x\ab`},
		{"C1 and DEL", "a\u009b2J\x7f", `"a\u009b2J\x7f"`, `a\u009b2J\x7f`, `a\u009b2J\x7f`},
		{"line ends", "a\nb\r\tc", `"a\nb\r\tc"`, `a\nb\r\tc`, "a\nb" + `\r\tc`},
		{"separators", "a\u2028b\u2029\u0085", `"a\u2028b\u2029\u0085"`, `a\u2028b\u2029\u0085`, `a\u2028b\u2029\u0085`},
		{"direction", "\u202ea\u2066b\u200f", `"\u202ea\u2066b\u200f"`, `\u202ea\u2066b\u200f`, `\u202ea\u2066b\u200f`},
		{"bytes", "\xff\xc3a\x9b", `"\xff\xc3a\x9b"`, `\xff\xc3a\x9b`, `\xff\xc3a\x9b`},
		{
			"blank letters", "a\u034fb\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800",
			`"a\u034fb\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800"`,
			`a\u034fb\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800`,
			`a\u034fb\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800`,
		},
		{
			"variation selectors", "a\u180b\u180d\u180f\ufe00\ufe0f\U000e0100\U000e01ef",
			`"a\u180b\u180d\u180f\ufe00\ufe0f\U000e0100\U000e01ef"`,
			`a\u180b\u180d\u180f\ufe00\ufe0f\U000e0100\U000e01ef`,
			`a\u180b\u180d\u180f\ufe00\ufe0f\U000e0100\U000e01ef`,
		},
		{"other blanks", "\u00ad\u00a0\u3000\U000e0041\U00016fe4\U0001d159", `"\u00ad\u00a0\u3000\U000e0041\U00016fe4\U0001d159"`, `\u00ad\u00a0\u3000\U000e0041\U00016fe4\U0001d159`, `\u00ad\u00a0\u3000\U000e0041\U00016fe4\U0001d159`},
		{"marks that show", "e\u0301 กำ हिं", "e\u0301 กำ हिं", "e\u0301 กำ हिं", "e\u0301 กำ हिं"},
		{"quotes beside them", "\"\x01\\", `"\"\x01\\"`, `"\x01\`, `"\x01\`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if word, line, lines := Word(test.text), Line(test.text), Lines(test.text); word != test.word ||
				line != test.line || lines != test.lines {
				t.Errorf("word %q, line %q, lines %q; want %q, %q, %q", word, line, lines, test.word,
					test.line, test.lines)
			}
		})
	}
}

// TestDrawn: a picture keeps its blanks, and nothing that moves a terminal.
func TestDrawn(t *testing.T) {
	const in, want = "⠀⣿\u2800\ufe0f x\x1b[2J\n\u202e\xff", "⠀⣿\u2800\ufe0f x" + `\x1b[2J\n\u202e\xff`
	if got := Drawn(in); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "plain", "a\x1b[2J\n", "\xff\u202e", `\x1b`, "a\u034f\ufe0f\U000e0100"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{Word(s), Line(s), strings.ReplaceAll(Lines(s), "\n", "")} {
			if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool { return !Visible(r) }) {
				t.Errorf("%q became %q", s, out)
			}
			if Line(out) != out || Lines(out) != out || out != "" && Word(out) != out {
				t.Errorf("%q, from %q, is escaped a second time", out, s)
			}
		}
		if strings.Count(Lines(s), "\n") != strings.Count(s, "\n") {
			t.Errorf("Lines changed the lines of %q", s)
		}
	})
}
