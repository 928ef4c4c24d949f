// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestGlobExpr: an expression takes all that its pattern takes, and only what is
// listed beyond that.
func TestGlobExpr(t *testing.T) {
	cases := []struct {
		name, glob string
		yes, no    []string
	}{
		{"star", "/w/*.env", []string{"/w/.env", "/w/a.env", "/w/a.env/x", "/w/A.ENV", "/w/a\nb.env", "/w/é.env"}, []string{"/w/a/b.env", "/w/a.envx", "/w/aenv", "/x/w/a.env"}},
		{"deep", "/w/**/k", []string{"/w/k", "/w/a/k", "/w/a/b/k", "/w/a/\n/k/x"}, []string{"/w/xk", "/w/a/kx", "/w"}},
		{"deep at the end", "/w/**", []string{"/w/a", "/w/a/b"}, []string{"/w", "/wa"}},
		{"deep twice", "/w/**/**/a/**/k", []string{"/w/a/k", "/w/x/a/y/k"}, []string{"/w/k", "/w/a/xk"}},
		{"one", "/w/?", []string{"/w/a", "/w/é", "/w/\u20ac", "/w/\U0001f600", "/w/.", "/w/-"}, []string{"/w/ab", "/w/"}},
		{"set", "/w/[a-c]x", []string{"/w/ax", "/w/Cx", "/w/cX"}, []string{"/w/dx", "/w/-x", "/w/x"}},
		{"negated set", "/w/[!1.]", []string{"/w/b", "/w/é", "/w/]"}, []string{"/w/1", "/w/."}},
		{"negated set ignores case as well", "/w/[!a]", []string{"/w/A", "/w/a"}, []string{"/w/bb"}},
		{"set with special characters", `/w/[]^\-]`, []string{"/w/]", "/w/^", "/w/-"}, []string{"/w/a", `/w/\`}},
		{"set beyond ASCII", "/w/[é]", []string{"/w/é"}, []string{"/w/e"}},
		{"escaped", `/w/\*\[\?`, []string{"/w/*[?"}, []string{"/w/a[b"}},
		{"special characters", `/w/(a|b)+.$^`, []string{"/w/(a|b)+.$^"}, []string{"/w/a", "/w/(a|b)+x$^"}},
		{"only folding", "/w/agents", []string{"/w/agent\u017f", "/w/AGENTS"}, []string{"/w/agent"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e, err := globExpr(c.glob)
			if err != nil {
				t.Fatal(err)
			}
			expr := byteExpr(e.tree)
			for _, s := range c.yes {
				if !expr.MatchString(bytesAsRunes(s)) {
					t.Errorf("%s does not take %q", e.tree, s)
				}
			}
			for _, s := range c.no {
				if expr.MatchString(bytesAsRunes(s)) {
					t.Errorf("%s takes %q", e.tree, s)
				}
			}
		})
	}
}

// FuzzGlobExpr: what a pattern matches, its expression matches.
func FuzzGlobExpr(f *testing.F) {
	for _, s := range []string{"/w/**/*.env", `/w/[a-z\]]?`, "/w/[!\x01]", "/w/\xff*", "/w/./x//[é-ü]/**"} {
		f.Add(s, "/w/a/b.env")
		f.Add(s, "/w/]x/\n")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := sandbox.CompileGlob(pattern)
		e, eerr := globExpr(pattern)
		if (err == nil) != (eerr == nil) {
			t.Fatalf("%v, %v", err, eerr)
		}
		if err != nil || name != path.Clean(name) || strings.ContainsRune(name, 0) {
			return
		}
		if g.MatchTree(name) && !byteExpr(e.tree).MatchString(bytesAsRunes(name)) {
			t.Fatalf("%q matches %q, and %q does not", pattern, name, e.tree)
		}
	})
}

// FuzzTreeExpr: the expression for a path takes the path, what lies below it, and
// no neighbor that is not the same name in another case.
func FuzzTreeExpr(f *testing.F) {
	for _, s := range []string{"/w/.git", odd, "/a.b", "/a\\", "/[", "/\xff/x", "/^$", "/\u212a", "/\u00df"} {
		f.Add(s, "/w/xgit")
		f.Add(s, s+"x")
		f.Add(s, strings.ToUpper(s))
	}
	f.Fuzz(func(t *testing.T, name, other string) {
		if name == "/" || !path.IsAbs(name) || path.Clean(name) != name ||
			strings.ContainsRune(name+other, 0) {
			return
		}
		expr := byteExpr(treeExpr(name))
		for _, s := range []string{name, name + "/x", name + "/\n", swapCase(name)} {
			if !expr.MatchString(bytesAsRunes(s)) {
				t.Fatalf("%q does not take %q", treeExpr(name), s)
			}
		}
		for _, s := range []string{other, name + other, name + "x", parent(name)} {
			same := false
			for at := s; at != "" && !same; at = at[:max(strings.LastIndexByte(at, '/'), 0)] {
				same = at == name || utf8.ValidString(at+name) && strings.EqualFold(at, name)
				if !same && !utf8.ValidString(at+name) {
					same = strings.EqualFold(bytesFold(at), bytesFold(name))
				}
			}
			if got := expr.MatchString(bytesAsRunes(s)); got && !same {
				t.Fatalf("%q takes %q", treeExpr(name), s)
			}
		}
	})
}

// swapCase turns the ASCII letters around.
func swapCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			b[i] = c ^ 0x20
		}
	}
	return string(b)
}

// bytesFold gives bytes that are no character one of their own, as far apart as
// they are.
func bytesFold(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n <= 1 {
			r = 0xe000 + rune(s[0])
		}
		b.WriteRune(r)
		s = s[n:]
	}
	return b.String()
}

// FuzzSeatbelt: whatever the names, the text of a profile is made of our own
// words, and it reads back as the same rules about them.
func FuzzSeatbelt(f *testing.F) {
	f.Add("/w", "/w/x", "/w/*.env")
	f.Add(odd, odd+"/y", "/w/\"[)]")
	f.Add(`/")(allow default)("`, "/;", "/w/;\n")
	f.Fuzz(func(t *testing.T, root, carve, glob string) {
		for _, s := range []string{root, carve, glob} {
			if !path.IsAbs(s) || s == "/" || path.Clean(s) != s || strings.ContainsRune(s, 0) ||
				within(macPath(s), "/dev") {
				return
			}
		}
		if carve == root {
			return
		}
		r := macRequest(rule(root, write, KindDirectory), rule(carve, deny, KindDirectory))
		if _, err := sandbox.CompileGlob(glob); err == nil {
			r.Patterns = []Pattern{{glob, deny}}
		}
		plain := macRequest(rule("/w", write, KindDirectory), rule("/w/x", deny, KindDirectory))
		p, prof := mac(t, r)
		_, ordinary := mac(t, plain)
		for _, c := range p.Exec.Args[2] {
			if c >= utf8.RuneSelf || c < ' ' && c != '\n' {
				t.Fatalf("%q stands in the text", c)
			}
		}
		if prof.allows("file-read-data", macPath(carve)) ||
			prof.allows("file-write-data", macPath(carve)+"/x") {
			t.Fatalf("%q is open:\n%s", carve, seatbeltText(p.Exec))
		}
		// Every rule begins as one of an ordinary profile does.
		known := map[string]bool{"file-write*": true}
		for _, o := range ordinary.rules {
			known[strings.Join(o.ops, " ")] = true
		}
		for _, o := range prof.rules {
			if !known[strings.Join(o.ops, " ")] || len(o.filters) == 0 && o.allow &&
				!strings.Contains("process-fork pseudo-tty ipc-posix-sem user-preference-read", o.ops[0]) {
				t.Fatalf("a rule about %q:\n%s", o.ops, seatbeltText(p.Exec))
			}
		}
	})
}
