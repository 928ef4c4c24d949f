// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"strings"
	"unicode/utf8"
)

// maxGlobLen bounds a pattern; longer ones are a mistake or an attack. It is
// Linux's PATH_MAX.
const maxGlobLen = 4096

// A Glob is a compiled pattern over absolute paths. The zero Glob matches
// nothing. A Glob is immutable.
type Glob struct {
	pattern string
	base    string
	parts   []globPart
}

// A GlobError says why a pattern was refused.
type GlobError struct {
	Pattern string
	Reason  string // a clause
}

// Error returns one sentence that names the pattern.
func (e *GlobError) Error() string {
	return "sandbox: glob pattern " + quote(e.Pattern) + ": " + e.Reason
}

// globPart matches one path component, or any number of them.
type globPart struct {
	deep bool // "**": any number of components, also none
	toks []globTok
}

// globTok matches one character, or any run of them.
type globTok struct {
	star   bool
	any    bool // "?"
	lit    rune // when neither of the others and ranges is nil
	ranges []globRange
	negate bool
}

type globRange struct{ lo, hi rune }

// CompileGlob compiles an absolute pattern.
//
// "*" stands for any characters within one component, "?" for one character,
// "[a-z]" and "[!a-z]" (or "[^a-z]") for one of a set, and "**" as a whole
// component for any number of components, also none; at the end of a pattern it
// stands for at least one. A backslash takes the next character as it is. A
// leading dot is not special. Braces are refused because peers read them as
// alternatives; "[{]" is a plain brace.
//
// The first component must be plain, so that a pattern always has a fixed
// folder below "/". Any failure is a [*GlobError].
func CompileGlob(pattern string) (Glob, error) {
	bad := func(reason string) (Glob, error) { //nolint:unparam // the form of a return statement
		return Glob{}, &GlobError{Pattern: pattern, Reason: reason}
	}
	switch {
	case len(pattern) > maxGlobLen:
		return Glob{}, &GlobError{Pattern: pattern[:64] + "...", Reason: "it is longer than 4096 bytes"}
	case !strings.HasPrefix(pattern, "/"):
		return bad("it must be absolute")
	case strings.ContainsRune(pattern, 0):
		return bad("it must not contain a zero byte")
	}
	g := Glob{pattern: pattern, base: "/"}
	fixed := true
	for name := range strings.SplitSeq(pattern, "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			return bad(`it must not contain ".."`)
		case "**":
			fixed = false
			if n := len(g.parts); n == 0 || !g.parts[n-1].deep {
				g.parts = append(g.parts, globPart{deep: true})
			}
			continue
		}
		toks, plain, reason := compileComponent(name)
		if reason != "" {
			return bad(reason)
		}
		fixed = fixed && plain != ""
		if fixed {
			g.base = path.Join(g.base, plain)
		}
		g.parts = append(g.parts, globPart{toks: toks})
	}
	if g.base == "/" {
		return bad(`it needs a fixed folder below "/"`)
	}
	if g.parts[len(g.parts)-1].deep {
		g.parts = append(g.parts, globPart{toks: []globTok{{star: true}}})
	}
	return g, nil
}

// compileComponent compiles one component. Plain is its text when it has no
// wildcard; reason is not empty when it cannot be compiled.
func compileComponent(name string) (toks []globTok, plain, reason string) {
	var text strings.Builder
	wild := false
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
			toks = append(toks, globTok{any: true})
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
			r, size = nextRune(name[i:])
			text.WriteString(name[i : i+size])
			i += size
			toks = append(toks, globTok{lit: r})
		default:
			text.WriteString(name[i-size : i])
			toks = append(toks, globTok{lit: r})
		}
	}
	plain = text.String()
	if plain == "." || plain == ".." {
		return nil, "", "a component must not be a dot or two dots"
	}
	if wild {
		plain = ""
	}
	return toks, plain, ""
}

// compileSet compiles what follows a "[" and returns its length with the "]".
// A "]" that comes first stands for itself, as everywhere.
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

// nextRune decodes one character. A byte that is not UTF-8 is a character of
// its own, above the range of Unicode, so that it equals only itself.
func nextRune(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size <= 1 {
		return utf8.MaxRune + 1 + rune(s[0]), 1
	}
	return r, size
}

// String returns the pattern as it was compiled; "" for the zero Glob.
func (g Glob) String() string { return g.pattern }

// Base returns the longest folder, or the file, that is fixed by the pattern
// and below which every match lies (or which is the match itself, for a pattern
// without wildcards). It is "" for the zero Glob.
func (g Glob) Base() string { return g.base }

// Match reports whether the whole of the absolute clean path matches.
func (g Glob) Match(name string) bool {
	_, whole := g.run(name)
	return whole
}

// MatchTree reports whether the absolute clean path or one of the folders
// above it matches: a folder that is denied takes along what is in it.
func (g Glob) MatchTree(name string) bool {
	some, _ := g.run(name)
	return some
}

// run walks the components of name and keeps the set of positions in the
// pattern that can have been reached, so that the time is bounded by the
// product of both lengths. It reports whether some leading part of name, and
// whether the whole of it, matches.
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
			// A "**" that matches nothing hands its place on; parts to the
			// right come later in this same loop.
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

// matchComponent matches one component, going back only to the latest star:
// an earlier one never needs to grow, because stars match any text.
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

// matches reports whether the token, which is no star, takes the character.
func (t globTok) matches(r rune) bool {
	switch {
	case t.any:
		return true
	case t.ranges == nil:
		return r == t.lit
	}
	in := false
	for _, g := range t.ranges {
		in = in || g.lo <= r && r <= g.hi
	}
	return in != t.negate
}

// globEscape returns text that a pattern matches literally.
func globEscape(s string) string {
	if !strings.ContainsAny(s, `*?[]{}\`) {
		return s
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(`*?[]{}\`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
