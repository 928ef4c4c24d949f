// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// maxGlobLen is the longest pattern, PATH_MAX of Linux.
const maxGlobLen = 4096

// Glob is a compiled pattern for absolute paths. The zero Glob matches nothing. A Glob is
// immutable.
type Glob struct {
	pattern string
	base    string
	parts   []globPart
}

// GlobError reports an invalid pattern.
type GlobError struct {
	Pattern string
	Reason  string
}

// Error returns one sentence with the pattern and the reason.
func (e *GlobError) Error() string {
	return "sandbox: glob pattern " + text.Line(quote(e.Pattern)) + ": " + text.Line(e.Reason)
}

// globPart matches one path component, or any number of them.
type globPart struct {
	deep bool // "**": any number of components, also none
	toks []globTok
}

// globTok matches one character of a set, or any run of characters.
type globTok struct {
	star   bool
	ranges []globRange
	negate bool // the characters that are not in ranges
}

type globRange struct{ lo, hi rune }

// CompileGlob compiles an absolute pattern.
//
// "*" matches any characters within one component, "?" one character, "[a-z]" and "[!a-z]"
// (or "[^a-z]") one of a set, and "**" as a whole component any number of components, also
// none; at the end of a pattern it matches at least one. A backslash takes the next
// character literally. A leading dot is not special. Braces are rejected because peers read
// them as alternatives; "[{]" is a literal brace.
//
// The first component must be literal, so that a pattern always has a fixed directory below
// "/". Any failure is a [*GlobError].
func CompileGlob(pattern string) (Glob, error) {
	g, reason := compileGlob(pattern)
	if reason == "" {
		return g, nil
	}
	if len(pattern) > maxGlobLen {
		pattern = pattern[:64] + "..."
	}
	return Glob{}, &GlobError{Pattern: pattern, Reason: reason}
}

// compileGlob is CompileGlob; a reason that is not empty says why it fails.
func compileGlob(pattern string) (g Glob, reason string) {
	switch {
	case len(pattern) > maxGlobLen:
		return g, "it is longer than 4096 bytes"
	case !strings.HasPrefix(pattern, "/"):
		return g, "it must be absolute"
	case strings.ContainsRune(pattern, 0):
		return g, "it must not contain a NUL byte"
	}
	g = Glob{pattern: pattern, base: "/"}
	fixed := true
	for name := range strings.SplitSeq(pattern, "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			return g, `it must not contain ".."`
		case "**":
			fixed = false
			if n := len(g.parts); n == 0 || !g.parts[n-1].deep {
				g.parts = append(g.parts, globPart{deep: true})
			}
			continue
		}
		toks, literal, reason := compileComponent(name)
		if reason != "" {
			return g, reason
		}
		fixed = fixed && literal != ""
		if fixed {
			g.base = path.Join(g.base, literal)
		}
		g.parts = append(g.parts, globPart{toks: toks})
	}
	if g.base == "/" {
		return g, `it needs a fixed directory below "/"`
	}
	if g.parts[len(g.parts)-1].deep {
		g.parts = append(g.parts, globPart{toks: []globTok{{star: true}}})
	}
	return g, ""
}

// compileComponent compiles one component. Literal is its text when it has no wildcard;
// reason is not empty when it is invalid.
func compileComponent(name string) (toks []globTok, literal, reason string) {
	var text strings.Builder
	wild := false
	add := func(char string) {
		r, _ := nextRune(char)
		text.WriteString(char)
		toks = append(toks, globTok{ranges: []globRange{{r, r}}})
	}
	for i := 0; i < len(name); {
		r, size := nextRune(name[i:])
		i += size
		switch r {
		case '*':
			wild = true
			if n := len(toks); n == 0 || !toks[n-1].star {
				toks = append(toks, globTok{star: true})
			}
		case '?':
			wild = true
			toks = append(toks, globTok{negate: true})
		case '{', '}':
			return nil, "", "braces are not supported; write one pattern for each case"
		case '[':
			tok, n, ok := compileSet(name[i:])
			if !ok {
				return nil, "", `a "[" has no matching "]"`
			}
			wild = true
			toks = append(toks, tok)
			i += n
		case '\\':
			if i == len(name) {
				return nil, "", "a backslash ends a component"
			}
			_, size = nextRune(name[i:])
			add(name[i : i+size])
			i += size
		default:
			add(name[i-size : i])
		}
	}
	literal = text.String()
	if literal == "." || literal == ".." {
		return nil, "", "a component must not be one or two dots"
	}
	if wild {
		literal = ""
	}
	return toks, literal, ""
}

// compileSet compiles the text after a "[" and returns its length with the "]". A "]" that
// comes first is literal, as in every shell.
func compileSet(s string) (tok globTok, n int, ok bool) {
	i := 0
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		tok.negate = true
		i++
	}
	next := func() (rune, bool) {
		if i < len(s) && s[i] == '\\' {
			i++
		}
		if i >= len(s) {
			return 0, false
		}
		r, size := nextRune(s[i:])
		i += size
		return r, true
	}
	for first := true; i < len(s); first = false {
		if s[i] == ']' && !first {
			return tok, i + 1, true
		}
		lo, ok := next()
		if !ok {
			return tok, 0, false
		}
		hi := lo
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			i++
			if hi, ok = next(); !ok {
				return tok, 0, false
			}
		}
		tok.ranges = append(tok.ranges, globRange{lo, hi})
	}
	return tok, 0, false
}

// nextRune decodes one character. A byte that is not UTF-8 becomes a character above the
// range of Unicode, so that it equals only itself.
func nextRune(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size <= 1 {
		return utf8.MaxRune + 1 + rune(s[0]), 1
	}
	return r, size
}

// String returns the pattern; "" for the zero Glob.
func (g Glob) String() string { return g.pattern }

// Base returns the longest directory that the pattern fixes and below which every match
// lies, or for a pattern without wildcards the match itself. It is "" for the zero Glob.
func (g Glob) Base() string { return g.base }

// Match returns whether the absolute clean path matches.
func (g Glob) Match(name string) bool {
	_, whole := g.run(name)
	return whole
}

// MatchTree returns whether the absolute clean path or a directory above it matches.
func (g Glob) MatchTree(name string) bool {
	some, _ := g.run(name)
	return some
}

// run returns whether a directory at or above name, and whether name itself, matches. It
// keeps the set of positions in the pattern that can have been reached, so the time is
// limited by the product of both lengths.
func (g Glob) run(name string) (some, whole bool) {
	if len(g.parts) == 0 || !strings.HasPrefix(name, "/") {
		return false, false
	}
	last := len(g.parts)
	now, next := make([]bool, last+1), make([]bool, last+1)
	now[0] = true
	for comp := range strings.SplitSeq(name, "/") {
		if comp == "" {
			continue
		}
		clear(next)
		alive := false
		for i, on := range now[:last] {
			// A "**" may match no component; the next part comes later in this loop.
			if on && g.parts[i].deep {
				now[i+1] = true
			}
			switch {
			case !on:
			case g.parts[i].deep:
				next[i], alive = true, true
			case matchComponent(g.parts[i].toks, comp):
				next[i+1], alive = true, true
			}
		}
		now, next = next, now
		whole = now[last]
		some = some || whole
		if !alive {
			return some, false
		}
	}
	return some, whole
}

// matchComponent matches one component. It goes back only to the latest star: an earlier one
// never needs to grow, because stars match any text.
func matchComponent(toks []globTok, s string) bool {
	starTok, starPos := -1, 0
	t, i := 0, 0
	for i < len(s) {
		if t < len(toks) && toks[t].star {
			starTok, starPos = t, i
			t++
			continue
		}
		r, size := nextRune(s[i:])
		if t < len(toks) && toks[t].matches(r) {
			t++
			i += size
			continue
		}
		if starTok < 0 {
			return false
		}
		_, size = nextRune(s[starPos:])
		starPos += size
		t, i = starTok+1, starPos
	}
	for t < len(toks) && toks[t].star {
		t++
	}
	return t == len(toks)
}

// matches returns whether the token, which is no star, matches the character.
func (t globTok) matches(r rune) bool {
	return t.negate != slices.ContainsFunc(t.ranges, func(g globRange) bool { return g.lo <= r && r <= g.hi })
}

// globEscape returns a pattern that matches exactly s.
func globEscape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(`*?[]{}\`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
