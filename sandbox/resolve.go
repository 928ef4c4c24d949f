// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// Resolved is a policy as lists, for an executor that builds a sandbox. Its slices belong to
// the caller. The level of a path is that of [Policy.LevelAt]: of the longest of Paths at or
// above it, else Root, and LevelDeny where one of Globs matches it or a directory above it.
type Resolved struct {
	Mode    Mode
	Network Network
	// Root is the level of "/". LevelDeny means that only listed paths are visible.
	Root Level
	// Paths are all paths except "/" that have a level of their own, without duplicates and
	// sorted, so that directories come before what is in them.
	Paths []PathRule
	// Globs are absolute patterns for [CompileGlob] whose matches are denied.
	Globs []string
	// GlobDepth is how deep a search for matches goes; 0 means that the policy does not say.
	GlobDepth int
	// Writable are the writable roots, those higher up first.
	Writable []WritableRoot
	// Hosts and Named are what grants allow; see [Policy.Hosts] and [Policy.Named].
	Hosts []string
	Named []string
	// Warnings are sentences about parts that were ignored.
	Warnings []string
}

// PathRule is the level of one path and of everything below it down to the next rule.
type PathRule struct {
	Path        string
	Level       Level
	SkipMissing bool // a path that does not exist is left out
	Auto        bool // a protected name that no entry of the policy is about
}

// WritableRoot is a directory that may be written, with its exceptions. An exception is
// listed with the nearest writable root above it only.
type WritableRoot struct {
	Root     string
	ReadOnly []string // below Root, readable
	Denied   []string // below Root, neither readable nor writable
	// Protected are the protected names at the top of Root, which must not be changed or
	// created. A name that an entry of the policy is about is not among them.
	Protected []string
}

// compiled is what [Policy.Rule] and [Policy.Resolve] need of a policy. It never changes.
type compiled struct {
	root     Level
	rooted   bool             // an entry is about "/"
	levels   map[string]Level // explicit and automatic, without "/"
	rules    []PathRule       // the same, sorted
	globs    []Glob
	warnings []string
	// limit is the highest level of any file. It is below LevelWrite when an entry that
	// narrows has no place: it narrows everything, because it is unknown what it narrows.
	limit Level
	loose []Entry // entries without a place, sorted
	err   error   // why Resolve fails
}

// compile compiles a policy. An invalid entry denies what it may have been about, and is
// kept in err.
func compile(p Policy) *compiled {
	c := &compiled{levels: map[string]Level{}, limit: LevelWrite}
	if p.mode != Managed || p.open {
		c.root = LevelWrite
		return c
	}
	explicit := map[string]PathRule{}
	for _, e := range p.list() {
		if err := e.Check(); err != nil {
			c.shut(e, LevelDeny, err)
			continue
		}
		c.place(e, explicit)
	}
	if r, ok := explicit["/"]; ok {
		c.root, c.rooted = r.Level, true
		delete(explicit, "/")
	}
	for name, r := range explicit {
		c.levels[name] = r.Level
	}
	c.needMinimal()
	c.protect(explicit)
	for name, r := range explicit {
		c.levels[name] = r.Level
		c.rules = append(c.rules, r)
	}
	slices.SortFunc(c.rules, func(a, b PathRule) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(c.loose, compareEntries)
	c.loose = slices.Compact(c.loose)
	return c
}

// place adds a valid entry.
func (c *compiled) place(e Entry, explicit map[string]PathRule) {
	unbound := func() {
		c.shut(e, e.Level, &PolicyError{Entry: e.String(),
			Reason: "its place is unknown; bind the policy to a directory first"})
	}
	if name, ok := e.Place.Absolute(); ok {
		r, seen := explicit[name]
		switch {
		case !seen || e.Level < r.Level:
			r = PathRule{Path: name, Level: e.Level, SkipMissing: e.SkipMissing}
		case e.Level == r.Level:
			r.SkipMissing = r.SkipMissing && e.SkipMissing
		}
		explicit[name] = r
		return
	}
	switch {
	case e.Place.Kind == PlaceGlob && path.IsAbs(e.Place.Path):
		g, err := CompileGlob(e.Place.Path)
		if err != nil {
			c.shut(e, LevelDeny, err)
			return
		}
		if !slices.ContainsFunc(c.globs, func(o Glob) bool { return o.pattern == g.pattern }) {
			c.globs = append(c.globs, g)
		}
	case e.Place.Kind == PlaceSpecial && !e.Place.Known():
		if e.Level == LevelDeny {
			c.shut(e, LevelDeny, &PolicyError{Entry: e.String(),
				Reason: "this version does not know the place that it denies"})
			return
		}
		c.warnings = append(c.warnings, "entry "+text.Word(e.String())+
			" is ignored: this version does not know the place")
	case e.Place.Kind == PlaceSpecial && e.Place.Token == TokenMinimal && e.Level == LevelRead:
		c.loose = append(c.loose, e) // needMinimal decides
	default:
		unbound()
	}
}

// shut notes an entry without a place. Level is the most that a file it may be about gets.
func (c *compiled) shut(e Entry, level Level, err error) {
	c.limit = min(c.limit, level)
	c.loose = append(c.loose, e)
	if c.err == nil {
		c.err = err
	}
}

// needMinimal decides about an unbound ":minimal=read": it is no error where everything is
// readable anyway.
func (c *compiled) needMinimal() {
	is := func(e Entry) bool {
		return e.Place.Token == TokenMinimal && e.Level == LevelRead &&
			e.Check() == nil
	}
	i := slices.IndexFunc(c.loose, is)
	if i < 0 {
		return
	}
	if c.root >= LevelRead {
		c.loose = slices.DeleteFunc(c.loose, is)
		return
	}
	if c.err == nil {
		c.err = &PolicyError{Entry: c.loose[i].String(),
			Reason: "its place is unknown; bind the policy to the paths of the platform first"}
	}
}

// protect adds the protected names at the top of every writable root, unless an entry for
// that very path says otherwise. A read entry that skips a missing path counts as such a
// name: peers write it for the same purpose.
func (c *compiled) protect(explicit map[string]PathRule) {
	var roots []string
	if c.root == LevelWrite {
		roots = append(roots, "/")
	}
	for name, r := range explicit {
		if r.Level == LevelWrite && !c.reopened(name) {
			roots = append(roots, name)
		}
	}
	for _, root := range roots {
		for _, n := range ProtectedNames() {
			name := path.Join(root, n)
			r, ok := explicit[name]
			switch {
			case !ok:
				explicit[name] = PathRule{Path: name, Level: LevelRead, SkipMissing: true, Auto: true}
			case r.Level == LevelRead && r.SkipMissing:
				r.Auto = true
				explicit[name] = r
			}
		}
	}
}

// reopened returns whether a writable path is a protected name of its directory that an
// entry has opened. Nothing is protected in it.
func (c *compiled) reopened(name string) bool {
	return isProtectedName(path.Base(name)) && c.level(path.Dir(name)) == LevelWrite
}

// level returns the level of a clean absolute path, without globs and limit.
func (c *compiled) level(name string) Level {
	if at, l := nearest(c.levels, name); at != "" {
		return l
	}
	return c.root
}

// nearest returns the longest path of the table at or above name, or "".
func nearest(levels map[string]Level, name string) (string, Level) {
	for {
		if l, ok := levels[name]; ok {
			return name, l
		}
		i := strings.LastIndexByte(name, '/')
		if i < 0 || name == "/" {
			return "", LevelDeny
		}
		name = name[:max(i, 1)]
	}
}

// stricter sets the level of a path to the stricter of two.
func stricter(levels map[string]Level, name string, l Level) {
	if old, ok := levels[name]; !ok || l < old {
		levels[name] = l
	}
}

// Resolve returns the policy as lists. It returns a [*PolicyError] for an entry that is
// invalid, not bound, or denies an unknown token. Unknown tokens that allow something are
// ignored and named in Warnings.
func (p Policy) Resolve() (Resolved, error) {
	c := p.compiled()
	if c.err != nil {
		return Resolved{}, c.err
	}
	r := Resolved{
		Mode: p.mode, Network: p.net, Root: c.root, GlobDepth: p.depth,
		Paths: slices.Clone(c.rules), Hosts: slices.Clone(p.hosts),
		Named: slices.Clone(p.named), Warnings: slices.Clone(c.warnings),
	}
	for _, g := range c.globs {
		r.Globs = append(r.Globs, g.pattern)
	}
	slices.Sort(r.Globs)
	r.Writable = c.writable()
	return r, nil
}

// writable returns the writable roots, each with the rules to which it is the nearest one.
func (c *compiled) writable() []WritableRoot {
	var roots []WritableRoot
	if c.root == LevelWrite {
		roots = append(roots, WritableRoot{Root: "/"})
	}
	for _, r := range c.rules {
		if r.Level == LevelWrite {
			roots = append(roots, WritableRoot{Root: r.Path})
		}
	}
	slices.SortStableFunc(roots, func(a, b WritableRoot) int {
		return cmp.Or(cmp.Compare(depth(a.Root), depth(b.Root)), strings.Compare(a.Root, b.Root))
	})
	levels := map[string]Level{}
	for _, w := range roots {
		levels[w.Root] = LevelWrite
	}
	for _, r := range c.rules {
		if r.Level == LevelWrite {
			continue
		}
		at, _ := nearest(levels, r.Path)
		i := slices.IndexFunc(roots, func(w WritableRoot) bool { return w.Root == at })
		if i < 0 {
			continue
		}
		w := &roots[i]
		switch {
		case r.Auto:
			w.Protected = append(w.Protected, r.Path)
		case r.Level == LevelRead:
			w.ReadOnly = append(w.ReadOnly, r.Path)
		default:
			w.Denied = append(w.Denied, r.Path)
		}
	}
	return roots
}

// depth returns the number of components of a clean absolute path.
func depth(name string) int {
	if name == "/" {
		return 0
	}
	return strings.Count(name, "/")
}
