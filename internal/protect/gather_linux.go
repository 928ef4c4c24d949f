// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/gitpaths"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// maxMatches bounds how many files the deny patterns of a policy may match.
const maxMatches = 8192

// A gathering finds out what stands at the paths of a policy.
type gathering struct {
	base  sandbox.Level // of what no rule is about
	roots []string      // writable roots, symbolic links resolved
	rules map[string]plan.Rule

	auto     bool     // what is added now is what every policy protects
	inner    bool     // what is added now belongs to a repository below a root
	loose    []string // rules of such ones, which may be replaced: commands make them anew
	present  []string // names at which something stands that is no placeholder
	dir      string   // where the command begins
	tmp      *plan.Tmp
	private  string // where a folder of ours stands; nothing of the host's is there
	flat     bool   // nothing can be mounted over what exists
	git      bool   // the grant git is given
	seen     map[string]*seenRepo
	reals    map[string]string // where paths of this gathering lead
	outside  gitpaths.Outside
	opened   []opened // those that the grant is for
	claims   []claim
	late     []claim // names in folders that are missing, too
	partly   bool    // a search for nested repositories stopped at its bound
	warnings []string
}

// gather turns the entries of a resolved policy into rules with facts. Every path
// in them is free of symbolic links. Protected names come after that, by protectAll.
func gather(res *sandbox.Resolved) (*gathering, error) {
	g := &gathering{base: res.Root, rules: make(map[string]plan.Rule)}
	for _, w := range res.Paths {
		if w.Level != sandbox.LevelWrite {
			continue
		}
		if err := g.root(w); err != nil {
			return nil, err
		}
	}
	for _, p := range res.Paths {
		if p.Level == sandbox.LevelWrite || p.Auto {
			continue
		}
		if err := g.carve(p.Path, p.Level, "policy"); err != nil {
			return nil, err
		}
	}
	for _, pattern := range res.Globs {
		if err := g.glob(pattern, res.GlobDepth); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// sorted returns the rules in the order of their paths.
func (g *gathering) sorted() []plan.Rule {
	rules := make([]plan.Rule, 0, len(g.rules))
	for _, r := range g.rules {
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b plan.Rule) int { return strings.Compare(a.Path, b.Path) })
	return rules
}

// add keeps a rule; where two meet at one place the stricter wins.
func (g *gathering) add(r plan.Rule) {
	r.Auto = r.Auto || g.auto
	if old, ok := g.rules[r.Path]; ok && old.Level <= r.Level {
		return
	}
	if g.inner {
		g.loose = append(g.loose, r.Path)
	}
	g.rules[r.Path] = r
}

// root adds a writable root, at the target of a symbolic link. A link that
// lies in another writable root is refused: a command could have planted it.
func (g *gathering) root(w sandbox.PathRule) error {
	real, err := g.eval(w.Path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			if w.SkipMissing {
				return nil
			}
			return &executor.RootError{Path: w.Path, Why: "does not exist, so it cannot be a writable root", Fix: "create it first, or leave it out"}
		}
		return &executor.RootError{Path: w.Path, Why: "cannot be a writable root: " + hostfacts.Reason(err)}
	}
	if link := g.redirect(w.Path, real); link != "" {
		return &sandbox.UnsupportedError{
			Need: "writable roots that no command can redirect",
			Have: fmt.Sprintf("%s leads through the symbolic link %s, which lies in another writable root", w.Path, link),
			Hint: "name the folder itself",
		}
	}
	spot, err := hostfacts.Look(real)
	if err != nil {
		return &executor.RootError{Path: w.Path, Why: "cannot be a writable root: " + hostfacts.Reason(err)}
	}
	if spot.Kind == plan.KindOther {
		return &executor.RootError{Path: w.Path, Why: "cannot be a writable root: it is neither a folder nor a regular file"}
	}
	g.roots = append(g.roots, real)
	g.add(plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Why: "writable"})
	return nil
}

// eval is hostfacts.EvalSymlinks, once for each path that exists: what is found out in one
// gathering belongs to one moment.
func (g *gathering) eval(name string) (string, error) {
	if real, ok := g.reals[name]; ok {
		return real, nil
	}
	real, err := hostfacts.EvalSymlinks(name)
	if err == nil {
		if g.reals == nil {
			g.reals = make(map[string]string)
		}
		g.reals[name] = real
	}
	return real, err
}

// redirect returns a symbolic link on the way from name to real that lies in a
// writable root, where a command could change it; empty without one.
func (g *gathering) redirect(name, real string) string {
	if name == real {
		return ""
	}
	for _, l := range hostfacts.Links(name) {
		if slices.ContainsFunc(g.roots, func(r string) bool { return l.Path != r && hostfacts.Below(l.Path, r) }) {
			return l.Path
		}
	}
	return ""
}

// carve adds a path that is to be readable only, or not at all. A path that is
// missing has nothing to protect.
func (g *gathering) carve(name string, level sandbox.Level, why string) error {
	real, err := hostfacts.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return &executor.RootError{Path: name, Why: "cannot be looked at: " + hostfacts.Reason(err), Fix: "the sandbox must know what stands there to protect it"}
	}
	if link := g.redirect(name, real); link != "" {
		return &sandbox.UnsupportedError{
			Need: fmt.Sprintf("a fixed place for %s", name),
			Have: fmt.Sprintf("it leads through the symbolic link %s, which lies in a writable root and can be changed by the command", link),
			Hint: "replace the link by the folder or file itself",
		}
	}
	spot, err := hostfacts.Look(real)
	if err != nil {
		return &executor.RootError{Path: name, Why: "cannot be looked at: " + hostfacts.Reason(err)}
	}
	g.add(plan.Rule{Spot: spot, Level: level, Why: why, Auto: level == sandbox.LevelRead && why != "policy"})
	return nil
}

// glob adds what a deny pattern matches now: the name itself and, for a
// symbolic link, its target.
func (g *gathering) glob(pattern string, depth int) error {
	m, err := sandbox.CompileGlob(pattern)
	if err != nil {
		return err
	}
	base := m.Base()
	found := 0
	return filepath.WalkDir(base, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil // what we cannot see, the command cannot see either
			}
			return &executor.RootError{Path: name, Why: "cannot be searched for " + pattern + ": " + hostfacts.Reason(err)}
		}
		if m.Match(name) {
			if found++; found > maxMatches {
				return &executor.RootError{Path: pattern, Why: fmt.Sprintf("matches more than %d files", maxMatches), Fix: "deny the folder that holds them instead"}
			}
			if err := g.match(name, d); err != nil {
				return err
			}
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		if d.IsDir() && depth > 0 && strings.Count(strings.TrimPrefix(name, base), "/") >= depth {
			return fs.SkipDir
		}
		return nil
	})
}

func (g *gathering) match(name string, d fs.DirEntry) error {
	if d.Type()&fs.ModeSymlink == 0 {
		return g.carve(name, sandbox.LevelDeny, "deny pattern")
	}
	// The link itself holds no content; what it leads to does.
	real, err := hostfacts.EvalSymlinks(name)
	if err != nil {
		return nil //nolint:nilerr // a link to nothing hides nothing
	}
	spot, err := hostfacts.Look(real)
	if err != nil {
		return &executor.RootError{Path: real, Why: "cannot be looked at: " + hostfacts.Reason(err)}
	}
	g.add(plan.Rule{Spot: spot, Level: sandbox.LevelDeny, Why: "target of a link that a deny pattern matches"})
	return nil
}

// aboutRoot refuses rules that turn out to be about "/", by a symbolic link that
// leads there: what the root is was decided by the policy, not by a link.
func (g *gathering) aboutRoot() error {
	if _, ok := g.rules["/"]; !ok {
		return nil
	}
	return &executor.RootError{Path: "/", Why: "is where a path of the policy leads by a symbolic link", Fix: "name the folder that is meant"}
}

// resolverFile keeps the file that /etc/resolv.conf leads to visible for commands
// that use the host's network: on many systems it lies below /run, which is
// covered.
func (g *gathering) resolverFile() {
	real := hostfacts.RealPath("/etc/resolv.conf")
	if _, ruled := g.rules[real]; ruled || !strings.HasPrefix(real, "/run/") {
		return
	}
	if s, err := hostfacts.Look(real); err == nil && s.Kind == plan.KindFile {
		g.add(plan.Rule{Spot: s, Level: sandbox.LevelRead, Why: "name servers"})
	}
}
