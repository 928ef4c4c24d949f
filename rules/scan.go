// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxNesting is how many tokens of a statement may be open at once. The parser and the
// compiler use their stack for each of them.
const maxNesting = 10_000

// maxEdits is how many edits a text may need.
const maxEdits = 10_000

// A scanner finds what the language does not have, and what would take the parser's stack,
// before the parser sees it.
type scanner struct {
	file string
	text []byte
	at   int // the byte that is next
	// open counts the tokens since the last comma, for each bracket that is open and the
	// statement itself.
	open  []int
	depth int   // their sum
	begin []int // where the open brackets are
	// fresh says that nothing but blanks stood on this line yet; before is the end of the
	// line before.
	fresh  bool
	before int
	prefix string // of the string that is next
	edits  []edit
	failed *LoadError // in a string
}

// An edit replaces bytes of the text, all on one line.
type edit struct {
	at, length int
	by         string
}

// scan checks a text. The scanner that it returns has the text with line ends of one byte.
// An error is a [LoadError].
func scan(file string, text []byte) (*scanner, error) {
	if len(text) > MaxFile {
		return nil, &LoadError{Pos: Pos{File: file},
			Text: fmt.Sprintf("the file has more than %d MiB; split it", MaxFile>>20)}
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	s := &scanner{file: file, text: text, open: []int{0}, fresh: true}
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return nil, s.fail(0, "byte order mark at the beginning of the file; save it as UTF-8 without one")
	case !utf8.Valid(text):
		for i := 0; ; {
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 {
				e := s.fail(i, "stream did not contain valid UTF-8")
				e.Unread = true
				return nil, e
			}
			i += n
		}
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return nil, s.fail(i, "NUL byte in the file; remove it")
	}
	if i := bytes.IndexByte(text, '\r'); i >= 0 {
		return nil, s.fail(i, "carriage return without a line feed; remove it")
	}
	for s.at < len(text) {
		if e := s.token(); e != nil {
			return nil, e
		}
	}
	return s, nil
}

// fail returns the error at a byte of the text.
func (s *scanner) fail(at int, reason string) *LoadError {
	before := s.text[:at]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &LoadError{Pos: Pos{s.file, bytes.Count(before, []byte("\n")) + 1,
		utf8.RuneCount(before[start:]) + 1}, Text: reason}
}

// unclosed returns the error for a text that ends inside a bracket, and nil for another.
func (s *scanner) unclosed() error {
	if len(s.begin) == 0 {
		return nil
	}
	at := s.begin[len(s.begin)-1]
	return s.fail(at, fmt.Sprintf("%q is not closed", s.text[at]))
}

// token reads one token.
func (s *scanner) token() *LoadError {
	c := s.text[s.at]
	switch c {
	case '\n':
		s.before, s.fresh = s.at, true
		if len(s.open) == 1 {
			s.count(-s.open[0])
		}
		s.at++
		return nil
	case ' ':
		s.at++
		return nil
	case '\t':
		return s.tabs()
	case '#':
		if n := bytes.IndexByte(s.text[s.at:], '\n'); n >= 0 {
			s.at += n
		} else {
			s.at = len(s.text)
		}
		return nil
	}
	s.fresh = false
	start := s.at
	s.skip(c)
	switch {
	case s.failed != nil:
		return s.failed
	case s.depth > maxNesting:
		return s.fail(start, "the expression is nested too deep; split it")
	case len(s.edits) > maxEdits:
		return s.fail(start, fmt.Sprintf("the file has more than %d f-strings and escapes that stand for themselves; use .format and two backslashes", maxEdits))
	case s.at < len(s.text) && (s.text[s.at] == '"' || s.text[s.at] == '\'') && word(c):
		s.prefix = string(s.text[start:s.at])
		switch s.prefix {
		case "f":
			s.edits = append(s.edits, edit{start, 1, "("})
		case "fr":
			s.edits = append(s.edits, edit{start, 2, "(r"})
		}
	}
	return nil
}

// skip moves behind the token that begins with c and counts it.
func (s *scanner) skip(c byte) {
	switch {
	case c == '"' || c == '\'':
		s.count(1)
		s.quoted(c)
		return
	case c == '(' || c == '[' || c == '{':
		s.open, s.begin = append(s.open, 0), append(s.begin, s.at)
		s.count(1)
	case c == ')' || c == ']' || c == '}':
		if len(s.open) > 1 {
			s.count(-s.open[len(s.open)-1])
			s.open, s.begin = s.open[:len(s.open)-1], s.begin[:len(s.begin)-1]
		}
	case c == ',' || c == ';':
		s.count(-s.open[len(s.open)-1])
	case word(c):
		s.count(1)
		start := s.at
		for s.at < len(s.text) && word(s.text[s.at]) {
			s.at++
		}
		if string(s.text[start:s.at]) == "elif" { // one inside the other, to the compiler
			s.depth++
		}
		return
	default:
		s.count(1)
	}
	s.at++
}

// count adds tokens to the innermost bracket.
func (s *scanner) count(n int) {
	s.open[len(s.open)-1] += n
	s.depth += n
}

// word reports whether c may be part of a name or a number.
func word(c byte) bool {
	return c == '_' || c >= utf8.RuneSelf || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' ||
		'A' <= c && c <= 'Z'
}

// quoted moves behind the string that begins with the quote. A string without end is the
// parser's to report.
func (s *scanner) quoted(quote byte) {
	three := func() bool {
		return s.at+2 < len(s.text) && s.text[s.at+1] == quote && s.text[s.at+2] == quote
	}
	format := s.prefix == "f" || s.prefix == "fr"
	length, raw := 1, slices.Contains([]string{"r", "b", "rb", "br", "fr"}, s.prefix)
	s.prefix = ""
	var args []string
	if three() {
		length = 3
	}
	for s.at += length; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == quote && (length == 1 || three()):
			s.at += length
			if format {
				s.edits = append(s.edits, edit{s.at, 0, ".format(" + strings.Join(args, ", ") + "))"})
			}
			return
		case format && (c == '{' || c == '}'):
			args = s.brace(args, quote)
		case c == '\n' && length == 1:
			return
		case c == '\\':
			if s.at++; !raw && s.at < len(s.text) {
				s.escape(s.text[s.at:])
			}
		}
	}
	s.at = len(s.text)
}

// brace reads a brace of an f-string, and adds its expression to those of the string.
func (s *scanner) brace(args []string, quote byte) []string {
	const most = 200 // bytes of an expression, whose nesting is not counted
	rest := s.text[s.at:]
	if len(rest) > 1 && rest[1] == rest[0] {
		s.at++
		return args
	}
	n := bytes.IndexByte(rest, '}')
	simple := func(r rune) bool {
		return r < utf8.RuneSelf && word(byte(r)) || strings.ContainsRune(` .+-*()[]'"`, r) &&
			r != rune(quote)
	}
	if n < 2 || n > most || bytes.ContainsFunc(rest[1:n], func(r rune) bool { return !simple(r) }) {
		if s.failed == nil {
			s.failed = s.fail(s.at, `only short expressions of names, indexes, calls and sums are supported in f-strings; use "{}".format(x)`)
		}
		return args
	}
	s.edits = append(s.edits, edit{s.at + 1, n - 1, ""})
	s.at += n
	return append(args, "("+string(rest[1:n])+")")
}

// escape notes an edit for what stands behind a backslash and means something else to the
// interpreter than to codex, whose unknown escapes keep their backslash and whose bytes from
// \x80 on are characters.
func (s *scanner) escape(rest []byte) {
	switch c := rest[0]; {
	case c == 'x' && len(rest) > 2 && rest[1] >= '8':
		s.edits = append(s.edits, edit{s.at, 1, "u00"})
	case (c == '2' || c == '3') && len(rest) > 2 && octal(rest[1]) && octal(rest[2]):
		s.edits = append(s.edits,
			edit{s.at, 3, fmt.Sprintf("u%04x", (c-'0')<<6|(rest[1]-'0')<<3|(rest[2]-'0'))})
	case !octal(c) && !strings.ContainsRune("abfnrtvxuU\\'\"\n", rune(c)):
		s.edits = append(s.edits, edit{s.at, 0, `\`})
	}
}

func octal(c byte) bool { return '0' <= c && c <= '7' }

// A shift is what an edit has added to the columns behind one.
type shift struct{ col, added int }

// edited returns the text with the edits, and the shifts of each line.
func (s *scanner) edited() ([]byte, map[int][]shift) {
	if len(s.edits) == 0 {
		return s.text, nil
	}
	var b []byte
	shifts, done, line := map[int][]shift{}, 0, 1
	col := 0 // the last column of what is in b
	for _, e := range s.edits {
		same := s.text[done:e.at]
		b = append(append(b, same...), e.by...)
		if i := bytes.LastIndexByte(same, '\n'); i >= 0 {
			line += bytes.Count(same, []byte("\n"))
			same, col = same[i+1:], 0
		}
		col += utf8.RuneCount(same) + len(e.by)
		shifts[line] = append(shifts[line], shift{col, len(e.by) - e.length})
		done = e.at + e.length
	}
	return append(b, s.text[done:]...), shifts
}

// tabs reads a run of blanks that begins with a tab. It may only stand on a line with
// nothing else but a comment.
func (s *scanner) tabs() *LoadError {
	tab := s.at
	s.at += len(s.text[s.at:]) - len(bytes.TrimLeft(s.text[s.at:], " \t"))
	empty := s.at == len(s.text) || s.text[s.at] == '\n' || s.text[s.at] == '#'
	switch {
	case s.fresh && empty:
		return nil
	case s.fresh && len(s.open) == 1 && s.before > 0:
		return s.fail(s.before, "tabs are not allowed: the next line is indented with one; use spaces")
	}
	return s.fail(tab, "tabs are not allowed; use spaces")
}
