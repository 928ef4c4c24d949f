// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

func TestMatcher(t *testing.T) {
	const k = 1 << 10
	long := strings.Repeat("y", 200*k)
	for _, c := range []struct {
		name, pattern string
		raw           bool
		output        []string // what exists at each look
		after         uint64
		want          int // the end of the match, or -1
	}{
		{"first of two", "READY", false, []string{"READY READY"}, 0, 5},
		{"the second one", "READY", false, []string{"READY READY"}, 5, 11},
		{"none behind it", "READY", false, []string{"READY"}, 1, -1},
		{"in two pieces", "READY", false, []string{"REA", "DY!"}, 0, 5},
		{"far before the end", "READY", false, []string{"READY" + long}, 0, 5},
		{"far behind the beginning", "READY$", false, []string{long + "READY"}, 0, 200*k + 5},
		{"in the middle", `(?m)^READY$`, false, []string{long + "\nREADY\n" + long}, 0, 200*k + 6},
		{"the beginning of all", `^y`, false, []string{"x" + long}, 0, -1},
		{"the beginning, case folded", `(?i)^X|z`, false, []string{long + "x" + long + "z"}, 0, 400*k + 2},
		{"the end of a piece is no end", `y$`, false, []string{long + "x"}, 0, -1},
		{"the end at a look", `y$`, false, []string{"y", "x"}, 0, 1},
		{"a word across pieces", `\by\b`, false, []string{"x" + long + " y "}, 0, 200*k + 3},
		{"quotes that go on", `^y|\Qa(b`, false, []string{"x" + long + "a(b"}, 0, 200*k + 4},
		{"colors within", "ready in [0-9]+ ms", false, []string{"ready in \x1b[1m12", "9\x1b[22m ms\r\n"}, 0, 24},
		{"colors for bytes", "ready in [0-9]+ ms", true, []string{"ready in \x1b[1m129\x1b[22m ms\r\n"}, 0, -1},
		{"bytes", "\x1b\\[1m", true, []string{"ready in \x1b[1m129"}, 0, 13},
		{"the end of a line on a terminal", `(?m)ready$`, false, []string{"ready\r\n"}, 0, 5},
		{"a return in the pattern", "ready\r\n", false, []string{"\x1b[1mready\x1b[m\r\n"}, 0, 14},
		{"a return as an escape", `(?m)ready\r$`, false, []string{"ready\r\n"}, 0, 6},
		{"a return by its number", `ready\x{00D}\n|x`, false, []string{"ready\r\n"}, 0, 7},
		{"a return in octal", `ready\15`, false, []string{"ready\r\n"}, 0, 6},
		{"no return in a class", `[^\r\n]+\n`, false, []string{"ready\r\n"}, 0, -1},
		{"a return behind a backslash", `\\\r`, false, []string{"a\\\r\n"}, 0, 3},
		{"a backslash and an r", `(?m)^C:\\root$`, false, []string{"C:\\root\r\n"}, 0, 7},
		{"a class with others", `(?m)^done\s`, false, []string{"done\r\nx"}, 0, 6},
		{"lines that are written anew", `(?m)^20%$`, false, []string{"10%\r20", "%\r30%"}, 0, 7},
		{"line ends within", "a\nb", false, []string{"a\r\nb"}, 0, 4},
		{"behind a title", `(?m)^\$ $`, false, []string{"x\n\x1b]0;title\a\x1b[1m$ \x1b[m"}, 0, 18},
		{"nothing but colors", "^$", false, []string{"\x1b[m\x1b[1m"}, 0, -1},
		{"an empty match", "x*", false, []string{"abc"}, 0, 0},
		{"an offset behind the end", "x", false, []string{"xx"}, 5, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := NewLog(2<<20, nil, nil)
			m := NewMatcher(regexp.MustCompile(c.pattern), c.raw, c.after)
			got := -1
			for _, text := range c.output {
				l.Write(executor.Stdout, []byte(text))
				total, _ := l.Size()
				if after, found := m.Look(t.Context(), l, total); found && got < 0 {
					got = int(after)
				}
			}
			if got != c.want {
				t.Errorf("it ends at %d, want %d", got, c.want)
			}
			if len(m.text) > 3*MaxMatch {
				t.Errorf("%d bytes of text are held", len(m.text))
			}
		})
	}
}

// TestMatcherGap: what is not retained matches nothing, and joins nothing.
func TestMatcherGap(t *testing.T) {
	l := NewLog(8, nil, nil)
	l.Write(executor.Stdout, []byte("READ"+strings.Repeat("x", 100)+"Y ok"))
	for pattern, want := range map[string]uint64{"READY": 0, "READ.*Y": 0, "(?m)^Y": 105, `\AY`: 0, `\nY`: 0,
		`\A\nY`: 0, "READ": 4, "ok$": 108} {
		after, found := NewMatcher(regexp.MustCompile(pattern), false, 0).Look(t.Context(), l, 108)
		if found != (want > 0) || after != want { // 0 is where it began
			t.Errorf("%q: %d, %v, want %d", pattern, after, found, want)
		}
	}
}

// FuzzMatcher compares with a search in the whole text.
func FuzzMatcher(f *testing.F) {
	f.Add("ab", []byte("xxabab"), uint8(2), false)
	f.Add(`(?m)^a\b`, []byte("b\r\nx\x1b[1ma b"), uint8(1), false)
	f.Fuzz(func(t *testing.T, pattern string, output []byte, size uint8, raw bool) {
		re, err := regexp.Compile(pattern)
		if err != nil || len(output) > 1000 || len(pattern) > 100 {
			return
		}
		l := NewLog(1<<20, nil, nil)
		m := NewMatcher(re, raw, 0)
		for at := 0; at < len(output); {
			n := min(len(output)-at, int(size)+1)
			l.Write(executor.Stdout, output[at:at+n])
			at += n
			after, found := m.Look(t.Context(), l, uint64(at))
			if after > uint64(at) {
				t.Fatalf("a match ends at %d of %d", after, at)
			}
			want := re.FindIndex(output[:at])
			if raw && (found != (want != nil) || found && after != uint64(want[1])) {
				t.Fatalf("%d, %v; want %v", after, found, want)
			}
			if found {
				return
			}
		}
	})
}
