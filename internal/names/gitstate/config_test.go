// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitstate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// configTests are configurations and what is in them, "key=value" or "key".
var configTests = []struct {
	name string
	text string
	want []string
	line int  // where it is broken, 0 if it is not
	own  bool // git prints it in another way than it reads it
}{
	{name: "empty"},
	{name: "mark", text: "\xef\xbb\xbf[core]\n\tbare = false\n", want: []string{"core.bare=false"}},
	{name: "cases", text: "[CoRe]\nHooksPath = X\n[Branch \"MaIn\"]\nReMote=O\n", want: []string{"core.hookspath=X", "branch.MaIn.remote=O"}},
	{name: "old subsections have no case", text: "[branch.MaIn]\nx=1\n", want: []string{"branch.main.x=1"}},
	{name: "one line", text: "[a]x=1\n[b \"c\"] y = 2 # z\n[d]z", want: []string{"a.x=1", "b.c.y=2", "d.z"}},
	{name: "without value", text: "[a]\nx\ny=\nz = # none\n", want: []string{"a.x", "a.y=", "a.z="}},
	{name: "comments", text: "# a\n; b\n[a] ; c\nx = 1 ; d\ny = 2# e\nz = \"3 ; 4\" # f\n", want: []string{"a.x=1", "a.y=2", "a.z=3 ; 4"}},
	{name: "quotes", text: "[a]\nx = \"  in \" out \"\"  \ny = a\"b\"c\nz = \"a\\\"b\\\\c\\n\\t\\b\"\n", want: []string{"a.x=  in  out ", "a.y=abc", "a.z=a\"b\\c\n\t\b"}},
	{name: "blanks", text: "[a]\nx =  one   two \t\n", want: []string{"a.x=one   two"}},
	{name: "lines that go on", text: "[a]\nx = one\\\n  two\\\n\ny = \"a\\\nb\"\n", want: []string{"a.x=one  two", "a.y=ab"}},
	{name: "CR LF", text: "[a]\r\nx = 1\r\ny = a\\\r\nb\r\nz = \"c\"\r\n", want: []string{"a.x=1", "a.y=ab", "a.z=c"}},
	{name: "subsection with escapes", text: "[a \"b\\\"c\\\\d\\e.f]g\"]\nx=1\n", want: []string{`a.b"c\de.f]g.x=1`}},
	{name: "subsection behind blanks", text: "[a \t \"b\"]x=1\n", want: []string{"a.b.x=1"}},
	{name: "empty subsection", text: "[a \"\"]x=1\n", want: []string{"a..x=1"}},
	{name: "digits and dashes", text: "[a-1.b2]x-y9=1\n", want: []string{"a-1.b2.x-y9=1"}},
	{name: "NUL ends a value", text: "[a]x=evil\x00good\n", want: []string{"a.x=evil"}},
	{name: "NUL ends a key", text: "[core \"hookspath\x00x\"]y=evil\n", want: []string{"core.hookspath=evil"}, own: true},
	{name: "end behind a backslash", text: "[a]\nx=1\\", want: []string{"a.x=1"}},
	{name: "end in a comment", text: "[a]\nx=1 # x", want: []string{"a.x=1"}},
	{name: "CR alone", text: "[a]\nx=1\r2\n", want: []string{"a.x=1 2"}, own: true},
	{name: "before any section", text: "[]x=1\n", want: []string{".x=1"}, own: true},
	{name: "no section end", text: "[a]x=1\n[b", want: []string{"a.x=1"}, line: 2},
	{name: "no quote", text: "[a b]\nx=1\n", line: 1},
	{name: "quote behind a line end", text: "[a\n\"b\"]\nx=1\n", line: 1},
	{name: "text behind the subsection", text: "[a \"b\" ]\nx=1\n", line: 1},
	{name: "line end in a subsection", text: "[a \"b\n\"]\n", line: 1},
	{name: "digit first", text: "[a]\n1x=1\n", line: 2},
	{name: "no equals", text: "[a]\nx 1\n", line: 2},
	{name: "comment behind a name", text: "[a]\nx # y\n", line: 2},
	{name: "open quote", text: "[a]\nx=1\ny=\"2\nz=3\n", want: []string{"a.x=1"}, line: 3},
	{name: "unknown escape", text: "[a]\nx=\\q\n", line: 2},
	{name: "underscore", text: "[a_b]\nx=1\n", line: 1},
	{name: "half a mark", text: "\xef\xbb[a]x=1\n", line: 1},
	{name: "form feed is no blank", text: "\f[a]x=1\n", line: 1},
}

func words(entries []Entry) []string {
	var words []string
	for _, e := range entries {
		if e.Plain {
			words = append(words, e.Key)
			continue
		}
		words = append(words, e.Key+"="+e.Value)
	}
	return words
}

func TestParseConfig(t *testing.T) {
	for _, test := range configTests {
		t.Run(test.name, func(t *testing.T) {
			entries, broken := ParseConfig([]byte(test.text))
			if diff := cmp.Diff(test.want, words(entries), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if broken != test.line {
				t.Errorf("broken in line %d, want %d", broken, test.line)
			}
		})
	}
}

func TestParseConfigLines(t *testing.T) {
	entries, broken := ParseConfig([]byte("# x\n[a]\n\nx = 1\\\n2\ny\n"))
	want := []Entry{{Key: "a.x", Value: "12", Line: 4}, {Key: "a.y", Plain: true, Line: 6}}
	if diff := cmp.Diff(want, entries); diff != "" || broken != 0 {
		t.Errorf("broken in line %d:\n%s", broken, diff)
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, test := range configTests {
		f.Add([]byte(test.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, broken := ParseConfig(text)
		lines := strings.Count(string(text), "\n") + 1
		if broken < 0 || broken > lines {
			t.Errorf("broken in line %d of %d", broken, lines)
		}
		last := 1
		for _, e := range entries {
			if e.Line < last || e.Line > lines || strings.ContainsRune(e.Key+e.Value, 0) || e.Plain &&
				e.Value != "" {
				t.Errorf("%+v behind line %d", e, last)
			}
			last = e.Line
		}
	})
}
