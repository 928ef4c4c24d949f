// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// check is rapid.Check with more tries than its default of 100, which is too
// few for policies of several entries.
func check(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	for range 10 {
		rapid.Check(t, prop)
	}
}

// within reports whether name is root or lies below it.
func within(root, name string) bool {
	return name == root || root == "/" || strings.HasPrefix(name, root+"/")
}

// The generators draw from few names, so that paths meet often.

func drawPath(t *rapid.T, label string) string {
	names := []string{"a", "ab", "b", ".git", ".codex", "x.env"}
	parts := rapid.SliceOfN(rapid.SampledFrom(names), 0, 4).Draw(t, label)
	return path.Join(append([]string{"/"}, parts...)...)
}

func drawLevel(t *rapid.T) Level {
	return Level(rapid.IntRange(0, int(LevelWrite)).Draw(t, "level"))
}

func drawEntry(t *rapid.T, bound bool) Entry {
	e := Entry{Level: drawLevel(t), SkipMissing: rapid.Bool().Draw(t, "skip")}
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case kind == 0:
		e.Place = Place{Kind: PlaceGlob,
			Path: rapid.SampledFrom([]string{"/a/**/*.env", "/a/*", "/b/**/.git",
				"/ab/x.env"}).Draw(t, "glob")}
		e.Level = LevelDeny
	case kind == 1:
		e.Place = Place{Kind: PlaceSpecial, Token: TokenRoot}
	case kind == 2 && !bound:
		e.Place = Place{Kind: PlaceSpecial, Token: rapid.SampledFrom([]string{
			TokenProjectRoots, TokenTmpDir, TokenSlashTmp, TokenMinimal, "future",
		}).Draw(t, "token")}
	case kind == 3 && !bound:
		e.Place = Place{Path: rapid.SampledFrom([]string{"a", "../b", "~/x"}).Draw(t, "relative")}
	default:
		e.Place = Place{Path: drawPath(t, "path")}
	}
	return e
}

func drawNetwork(t *rapid.T) Network {
	return Network(rapid.IntRange(0, int(NetworkHost)).Draw(t, "network"))
}

func drawPolicy(t *rapid.T, bound bool) Policy {
	switch rapid.IntRange(0, 14).Draw(t, "shape") {
	case 0:
		return FullAccess()
	case 1:
		return Policy{mode: External, net: drawNetwork(t), listed: true}.seal()
	case 2:
		return unrestricted(drawNetwork(t))
	case 3:
		if !bound {
			return Policy{}
		}
		return Policy{}.Bind(testPlaces())
	}
	n := rapid.IntRange(0, 6).Draw(t, "entries")
	var es []Entry
	for range n {
		es = append(es, drawEntry(t, bound))
	}
	p, err := New(Managed, drawNetwork(t), es...)
	if err != nil {
		t.Fatal(err)
	}
	for range rapid.IntRange(0, 1).Draw(t, "grants") {
		p = p.With(drawGrant(t))
	}
	return p
}

func drawGrant(t *rapid.T) Grant {
	switch rapid.IntRange(0, 5).Draw(t, "grant") {
	case 0:
		return Grant{Addr: rapid.SampledFrom([]string{"h:1", "h", "g:1", "127.0.0.1:1",
			"junk:junk"}).Draw(t, "addr")}
	case 1:
		return Grant{Name: "git"}
	}
	return Grant{Level: drawLevel(t), Path: drawPath(t, "grant path")}
}

func drawAccess(t *rapid.T) Access {
	a := Access{Op: Op(rapid.IntRange(0, int(Syscall)).Draw(t, "op"))}
	switch a.Op {
	case Connect, Bind:
		a.Net = rapid.SampledFrom([]string{"tcp", "unix", "http"}).Draw(t, "net")
		a.Addr = rapid.SampledFrom([]string{"h:1", "h:2", "g:1", "127.0.0.1:1", "0.0.0.0:1", "junk:junk",
			"/a/b", "@x", ""}).Draw(t, "addr")
	default:
		a.Path = drawPath(t, "access path")
	}
	return a
}

func describe(p Policy) string {
	return fmt.Sprintf("%v %v open=%v %v hosts=%v", p.mode, p.net, p.open, p.list(), p.hosts)
}

func TestWithNeverNarrows(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := drawPolicy(t, rapid.Bool().Draw(t, "bound"))
		var gs []Grant
		for range rapid.IntRange(1, 3).Draw(t, "n") {
			gs = append(gs, drawGrant(t))
		}
		q := p.With(gs...)
		for range 20 {
			a := drawAccess(t)
			if p.Rule(a) > q.Rule(a) {
				t.Fatalf("%s\nwith %v\n%+v: from %v to %v", describe(p), gs, a, p.Rule(a), q.Rule(a))
			}
		}
	})
}

// A bound policy with grants covers the one without: the same, said by Covers.
func TestWithIsCovered(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := drawPolicy(t, true)
		g := drawGrant(t)
		if q := p.With(g); !q.Covers(p) {
			t.Fatalf("%s\nwith %v: %s\ndoes not cover it", describe(p), g, describe(q))
		}
	})
}

// A grant opens its path unless something denies it, and opens no denial.
func TestWithOpensAndKeepsDenials(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := drawPolicy(t, true)
		g := Grant{Level: drawLevel(t), Path: drawPath(t, "path")}
		q := p.With(g)
		if !p.Denies() && q.LevelAt(g.Path) < g.Level {
			t.Fatalf("%s\nwith %v gives %v", describe(p), g, q.LevelAt(g.Path))
		}
		if p.mode != Managed || p.open {
			return
		}
		name := drawPath(t, "other")
		c := p.compiled()
		denied := slices.ContainsFunc(c.globs, func(g Glob) bool { return g.MatchTree(name) })
		if at, l := nearest(c.levels, name); at != "" && l == LevelDeny {
			denied = true
		}
		if denied && q.LevelAt(name) != LevelDeny {
			t.Fatalf("%s\nwith %v reopens %s", describe(p), g, name)
		}
	})
}

func TestCoversIsSound(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := drawPolicy(t, rapid.Bool().Draw(t, "bound p"))
		q := related(t, p)
		if !p.Covers(q) {
			return
		}
		pl := testPlaces()
		pl.Dir, pl.Workspaces = drawPath(t, "dir"), nil
		bp, bq := p.Bind(pl), q.Bind(pl)
		for range 20 {
			a := drawAccess(t)
			if q.Rule(a) > p.Rule(a) {
				t.Fatalf("%s\ncovers %s\nbut %+v: %v against %v", describe(p), describe(q), a,
					p.Rule(a), q.Rule(a))
			}
			if bq.Rule(a) > bp.Rule(a) {
				t.Fatalf("bound to %s: %s\ncovers %s\nbut %+v: %v against %v", pl.Dir, describe(p),
					describe(q), a, bp.Rule(a), bq.Rule(a))
			}
		}
	})
}

// related draws a policy that often compares with p.
func related(t *rapid.T, p Policy) Policy {
	switch rapid.IntRange(0, 4).Draw(t, "related") {
	case 0:
		return p.WithEntries(drawEntry(t, true))
	case 1:
		return p.With(drawGrant(t))
	case 2:
		return p.WithNetwork(drawNetwork(t))
	case 3:
		if len(p.entries) > 0 {
			i := rapid.IntRange(0, len(p.entries)-1).Draw(t, "drop")
			p.entries = slices.Delete(p.Entries(), i, i+1)
			p.listed = true
			return p.seal()
		}
	}
	return drawPolicy(t, rapid.Bool().Draw(t, "bound q"))
}

// Covers decides bound policies without globs exactly.
func TestCoversIsExactOnFiles(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := drawPolicy(t, true)
		q := related(t, p)
		pc, qc := p.compiled(), q.compiled()
		if p.mode != Managed || q.mode != Managed ||
			len(pc.globs)+len(qc.globs)+len(pc.loose)+len(qc.loose) > 0 || !p.coversNet(q) || p.Covers(q) {
			return
		}
		for _, r := range append(slices.Concat(pc.rules, qc.rules), PathRule{Path: "/"}) {
			if q.LevelAt(r.Path) > p.LevelAt(r.Path) {
				return
			}
		}
		t.Fatalf("%s\ndoes not cover %s\nfor no reason", describe(p), describe(q))
	})
}

func TestCoversIsAPartialOrder(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := drawPolicy(t, rapid.Bool().Draw(t, "bound"))
		q := related(t, p)
		r := related(t, q)
		for _, x := range []Policy{p, q, r} {
			if !x.Covers(x) {
				t.Fatalf("%s does not cover itself", describe(x))
			}
		}
		list := []Policy{p, q, r}
		for _, x := range list {
			for _, y := range list {
				for _, z := range list {
					if x.Covers(y) && y.Covers(z) && !x.Covers(z) {
						t.Fatalf("%s\ncovers %s\ncovers %s\nbut the first not the last", describe(x),
							describe(y), describe(z))
					}
				}
			}
		}
		if p.Covers(q) && q.Covers(p) {
			for range 10 {
				if a := drawAccess(t); p.Rule(a) != q.Rule(a) {
					t.Fatalf("%s\nand %s\ncover each other but differ on %+v", describe(p), describe(q), a)
				}
			}
		}
	})
}

// TestResolveAgreesWithRule judges by the lists of Resolve alone.
func TestResolveAgreesWithRule(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := drawPolicy(t, rapid.Bool().Draw(t, "bound")).Bind(testPlaces())
		r, err := p.Resolve()
		if err != nil {
			for _, op := range []Op{Read, Write} {
				if a := (Access{Op: op, Path: "/a"}); op == Write && p.compiled().limit < LevelWrite &&
					p.Rule(a) == Allow {
					t.Fatalf("%s\nallows %v although an entry that narrows has no place", describe(p), a)
				}
			}
			return
		}
		name := drawPath(t, "name")
		want, best := r.Root, ""
		for _, pr := range r.Paths {
			if (name == pr.Path || strings.HasPrefix(name, pr.Path+"/")) && len(pr.Path) > len(best) {
				want, best = pr.Level, pr.Path
			}
		}
		for _, g := range r.Globs {
			c, err := CompileGlob(g)
			if err != nil {
				t.Fatal(err)
			}
			if c.MatchTree(name) {
				want = LevelDeny
			}
		}
		if got := p.LevelAt(name); got != want {
			t.Fatalf("%s\n%s has %v, the lists say %v", describe(p), name, got, want)
		}
		checkWritable(t, r)
	})
}

// checkWritable checks that every rule that is not write stands in exactly one
// writable root if it lies in one.
func checkWritable(t *rapid.T, r Resolved) {
	seen := map[string]string{}
	for _, w := range r.Writable {
		for _, c := range slices.Concat(w.ReadOnly, w.Denied, w.Protected) {
			if seen[c] != "" {
				t.Fatalf("%s is carved out of %s and %s", c, seen[c], w.Root)
			}
			seen[c] = w.Root
			if !within(w.Root, c) {
				t.Fatalf("%s is not in %s", c, w.Root)
			}
		}
	}
	for _, pr := range r.Paths {
		in := slices.ContainsFunc(r.Writable, func(w WritableRoot) bool { return within(w.Root, pr.Path) })
		if in && pr.Level != LevelWrite && seen[pr.Path] == "" {
			t.Fatalf("%s is in no list", pr.Path)
		}
	}
}

func TestPoliciesAreNotAliased(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := drawPolicy(t, true)
		given := []Entry{PathEntry("/a", LevelDeny)}
		made, err := New(Managed, NetworkNone, given...)
		given[0].Level = LevelWrite
		if err != nil || made.Entries()[0].Level != LevelDeny {
			t.Fatalf("New shares the caller's slice, error %v", err)
		}
		before := describe(p)
		es := []Entry{PathEntry("/a", LevelDeny), PathEntry("/b", LevelRead)}
		q := p.WithEntries(es...)
		s := p.WithEntries(PathEntry("/ab", LevelRead))
		qBefore, sBefore := describe(q), describe(s)
		es[0].Level = LevelWrite
		for _, x := range []Policy{p, q, s} {
			if got := x.Entries(); len(got) > 0 {
				got[0].Level = LevelWrite
				got[0].Place.Path = "/zzz"
				_ = append(got[:0], PathEntry("/yyy", LevelWrite))
			}
			if r, err := x.Resolve(); err == nil {
				want := fmt.Sprintf("%+v", r)
				for i := range r.Paths {
					r.Paths[i].Level = LevelWrite
				}
				for i := range r.Writable {
					r.Writable[i].Protected = nil
				}
				if again, err := x.Resolve(); err != nil || fmt.Sprintf("%+v", again) != want {
					t.Fatalf("Resolve shares its lists: %+v, error %v", again, err)
				}
			}
			_ = x.With(Grant{Level: LevelWrite, Path: "/a/b"}, Grant{Addr: "h:9"}, Grant{Name: "z"})
			_ = x.WithEntries(PathEntry("/new", LevelWrite))
		}
		if describe(p) != before || describe(q) != qBefore || describe(s) != sBefore {
			t.Fatalf("a policy changed:\n%s\n%s", before, describe(p))
		}
		if q.mode == Managed && q.LevelAt("/a") != LevelDeny {
			t.Fatal("a caller's slice is shared")
		}
	})
}

func TestEntryOrderDoesNotMatter(t *testing.T) {
	check(t, func(t *rapid.T) {
		var es []Entry
		for range rapid.IntRange(0, 6).Draw(t, "n") {
			es = append(es, drawEntry(t, false))
		}
		shuffled := rapid.Permutation(es).Draw(t, "order")
		p, err := New(Managed, NetworkNone, es...)
		if err != nil {
			t.Fatal(err)
		}
		q, err := New(Managed, NetworkNone, shuffled...)
		if err != nil {
			t.Fatal(err)
		}
		a := drawAccess(t)
		pl := testPlaces()
		if !p.Equal(q) || p.Rule(a) != q.Rule(a) || p.Bind(pl).Rule(a) != q.Bind(pl).Rule(a) ||
			p.Name() != q.Name() {
			t.Fatalf("%v and %v differ on %+v", es, shuffled, a)
		}
	})
}
