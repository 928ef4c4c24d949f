// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		name, pattern, path string
		want                bool
	}{
		{"plain", "/a/b", "/a/b", true},
		{"plain is no prefix", "/a/b", "/a/bc", false},
		{"star", "/a/*.env", "/a/x.env", true},
		{"star matches nothing", "/a/*.env", "/a/.env", true},
		{"star stays in a component", "/a/*.env", "/a/b/x.env", false},
		{"star backtracks", "/a/*ab*c", "/a/xaabab.c", true},
		{"star fails", "/a/*ab*c", "/a/xaabab.d", false},
		{"question", "/a/?", "/a/é", true},
		{"question is one", "/a/?", "/a/xy", false},
		{"question takes a bad byte", "/a/?", "/a/\xff", true},
		{"bad byte is itself", "/a/\xff", "/a/\xfe", false},
		{"deep", "/a/**/x", "/a/b/c/x", true},
		{"deep matches none", "/a/**/x", "/a/x", true},
		{"deep twice", "/a/**/**/x/**/y", "/a/x/y", true},
		{"deep at the end needs one", "/a/**", "/a", false},
		{"deep at the end", "/a/**", "/a/b/c", true},
		{"deep within a component is a star", "/a/x**y", "/a/xzy", true},
		{"deep within a component stays", "/a/x**y", "/a/x/y", false},
		{"set", "/a/[xy]", "/a/y", true},
		{"set fails", "/a/[xy]", "/a/z", false},
		{"range", "/a/[a-cx-z]1", "/a/b1", true},
		{"negated", "/a/[!a-c]", "/a/d", true},
		{"negated fails", "/a/[^a-c]", "/a/b", false},
		{"bracket in a set", "/a/[]x]", "/a/]", true},
		{"minus at the end of a set", "/a/[x-]", "/a/-", true},
		{"escaped in a set", `/a/[\]]`, "/a/]", true},
		{"escaped star", `/a/\*`, "/a/*", true},
		{"escaped star is no star", `/a/\*`, "/a/x", false},
		{"brace in a set", "/a/[{]x[}]", "/a/{x}", true},
		{"doubled slashes", "//a//b/./c", "/a/b/c", true},
		{"relative path", "/a/*", "a/b", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := CompileGlob(tt.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Match(tt.path); got != tt.want {
				t.Errorf("Match(%q) = %v", tt.path, got)
			}
			if tt.want && !g.MatchTree(tt.path+"/below") {
				t.Error("MatchTree does not hold below a match")
			}
		})
	}
}

func TestGlobBase(t *testing.T) {
	for _, tt := range []struct{ name, pattern, want string }{
		{"wildcard", "/a/b/*.c", "/a/b"},
		{"deep", "/a/**/b", "/a"},
		{"plain", "/a/b", "/a/b"},
		{"plain after a wildcard", "/a/*/b", "/a"},
		{"escaped", `/a/\[b\]/*`, "/a/[b]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := CompileGlob(tt.pattern)
			if err != nil || g.Base() != tt.want || g.String() != tt.pattern {
				t.Errorf("Base() = %q, String() = %q, error %v", g.Base(), g.String(), err)
			}
		})
	}
	if (Glob{}).MatchTree("/a") || (Glob{}).Match("/") {
		t.Error("the zero Glob matches something")
	}
}

func TestCompileGlobRefuses(t *testing.T) {
	for _, tt := range []struct{ name, pattern string }{
		{"empty", ""},
		{"relative", "a/*"},
		{"root", "/"},
		{"wildcard at the top", "/*/a"},
		{"deep at the top", "/**/a"},
		{"climbing", "/a/../b"},
		{"escaped climbing", `/a/\.\./b`},
		{"open bracket", "/a/[b"},
		{"empty set", "/a/[]"},
		{"set across a slash", "/a/[b/c]"},
		{"open range", "/a/[b-"},
		{"final backslash", `/a/b\`},
		{"braces", "/a/{b,c}"},
		{"zero byte", "/a/\x00"},
		{"too long", "/a/" + strings.Repeat("b", maxGlobLen)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := CompileGlob(tt.pattern)
			var ge *GlobError
			if !errors.As(err, &ge) || len(err.Error()) > 300 {
				t.Errorf("error %v, want a short GlobError", err)
			}
		})
	}
}

// Patterns that make naive matchers exponential.
func TestGlobIsNotExponential(t *testing.T) {
	for _, tt := range []struct{ name, pattern, path string }{
		{"stars", "/a/" + strings.Repeat("*a", 1000) + "b", "/a/" + strings.Repeat("a", 4000)},
		{"deeps", "/a/" + strings.Repeat("**/a/", 700) + "b", "/a" + strings.Repeat("/a", 2000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := CompileGlob(tt.pattern)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if g.MatchTree(tt.path) {
				t.Error("matches")
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

// FuzzGlob compares the matcher with a regular expression.
func FuzzGlob(f *testing.F) {
	f.Add("/a/**/*.env", "/a/b/c.env")
	f.Add("/a/[!x-z]?*", "/a/bcd")
	f.Add(`/a/\*b**c`, "/a/*bc")
	f.Add("/a/**/b/**", "/a/b/b/c")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := CompileGlob(pattern)
		if err != nil || !isClean(name) {
			return
		}
		if g.Match(name) && !g.MatchTree(name) {
			t.Errorf("%q matches %q but not as a tree", pattern, name)
		}
		if g.MatchTree(name) && !strings.HasPrefix(name+"/", g.Base()+"/") {
			t.Errorf("%q matches %q outside of %q", pattern, name, g.Base())
		}
		// Only patterns that both notations spell alike are compared.
		if strings.ContainsAny(pattern, `[\`) || !strings.HasPrefix(pattern, "/") ||
			strings.ContainsFunc(pattern+name, func(r rune) bool { return r > 126 || r < 32 }) {
			return
		}
		re, err := regexp.Compile(globRegexp(pattern))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := g.Match(name), re.MatchString(name); got != want {
			t.Errorf("%q and %q: %v, the expression %s says %v", pattern, name, got, re, want)
		}
	})
}

// globRegexp translates a pattern without sets and escapes.
func globRegexp(pattern string) string {
	var b strings.Builder
	b.WriteString("^")
	parts := slices.DeleteFunc(strings.Split(pattern, "/"),
		func(s string) bool { return s == "" || s == "." })
	for i, p := range parts {
		switch {
		case p == "**" && i == len(parts)-1:
			b.WriteString("(/[^/]+)+")
		case p == "**":
			b.WriteString("(/[^/]+)*")
		default:
			b.WriteString("/")
			for _, r := range p {
				switch r {
				case '*':
					b.WriteString("[^/]*")
				case '?':
					b.WriteString("[^/]")
				default:
					b.WriteString(regexp.QuoteMeta(string(r)))
				}
			}
		}
	}
	return b.String() + "$"
}
