// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/gitpaths"
	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A seenRepo is what was found out about a folder: its repository or nil, what git
// obeys of it, and what is wrong with either.
type seenRepo struct {
	repo     *gitpaths.Repository
	openErr  error
	paths    []gitpaths.Path
	pathsErr error
}

// see looks at a folder once: it is asked about for several reasons.
func (g *gathering) see(work string) *seenRepo {
	if s := g.seen[work]; s != nil {
		return s
	}
	s := new(seenRepo)
	if s.repo, s.openErr = gitpaths.Open(work); s.repo != nil && s.openErr == nil {
		s.paths, s.pathsErr = s.repo.Protected(g.outside)
	}
	if g.seen == nil {
		g.seen = make(map[string]*seenRepo)
	}
	g.seen[work] = s
	return s
}

// around protects what the repositories above a writable root obey in it: their
// configuration can name hooks or files that lie there.
func (g *gathering) around(root string) error {
	for at := root; at != "/"; {
		at = filepath.Dir(at)
		s := g.see(at)
		if s.openErr != nil {
			g.warn(s.openErr)
		}
		if r := s.repo; r == nil || slices.ContainsFunc(g.opened, func(o opened) bool { return o.work == r.Work && o.repo != nil }) {
			continue // none, or its paths are shut with the grant
		}
		if s.pathsErr != nil {
			g.warn(s.pathsErr)
		}
		inside := slices.DeleteFunc(slices.Clone(s.paths), func(p gitpaths.Path) bool { return !hostfacts.Below(p.Path, root) })
		if err := g.shut(inside); err != nil {
			return err
		}
	}
	return nil
}

// closed finds out whether a workspace lies in something that is protected itself,
// as with a git folder or its hooks as the working directory. It is readable only
// then: that it was chosen as the workspace does not say that it may be changed.
// A repository of its own in such a place, as some tools put there, is not closed.
func (g *gathering) closed(root string) (bool, error) {
	if root != g.dir {
		return false, nil // an entry of the policy names it
	}
	close := func(what string) (bool, error) {
		g.warnings = append(g.warnings, fmt.Sprintf("%s is not writable in this run, because it belongs to %s; an entry of its own in a workspace above it opens it", root, what))
		return true, g.carve(root, sandbox.LevelRead, whyName)
	}
	for at := root; at != "/"; at = filepath.Dir(at) {
		if slices.Contains(sandbox.ProtectedNames(), filepath.Base(at)) {
			return close("the protected name " + at)
		}
		s := g.see(at)
		r := s.repo
		if s.openErr != nil || r == nil {
			continue
		}
		for _, p := range s.paths { // what is wrong there is told elsewhere
			if p.IsDir && !p.Missing && hostfacts.Below(root, p.Path) && !(r.Bare && root == r.Work) {
				return close(fmt.Sprintf("%s (%s)", p.Path, p.Why))
			}
		}
		if !r.Bare {
			break // what is above says nothing about a work tree
		}
	}
	return false, nil
}

// personal protects the configuration of the user's git, where a writable root
// holds it: git obeys it in every repository.
func (g *gathering) personal() error {
	paths, err := g.outside.Protected()
	if err != nil {
		g.warn(err)
	}
	return g.shut(slices.DeleteFunc(paths, func(p gitpaths.Path) bool {
		if p.Symlink && g.level(p.Path) == sandbox.LevelWrite {
			g.warnings = append(g.warnings, fmt.Sprintf("%s (%s) can be turned elsewhere by the command", p.Path, p.Why))
		}
		return p.Symlink
	}))
}

// named protects the names of a root that entries of the policy are about. An entry
// that takes .git away says nothing of what git obeys elsewhere, and one for a
// missing name does not make that name.
func (g *gathering) named(w sandbox.WritableRoot, root string) error {
	for _, name := range slices.Concat(w.ReadOnly, w.Denied) {
		base := filepath.Base(name)
		if filepath.Dir(name) != w.Root || !slices.Contains(sandbox.ProtectedNames(), base) {
			continue
		}
		at := filepath.Join(root, base)
		if _, ruled := g.rules[at]; !ruled {
			if base != ".git" {
				if err := g.protect(at); err != nil {
					return err
				}
				continue
			}
			g.claim(claim{Claim: guard.Claim{Path: at, Why: whyNewRepo}})
			continue
		}
		if base != ".git" {
			continue
		}
		r, err := gitpaths.Open(root)
		if err != nil {
			g.warn(err)
		}
		if r == nil {
			continue
		}
		paths, err := r.Protected(g.outside)
		if err != nil {
			g.warn(err)
		}
		if err := g.shut(paths); err != nil {
			return err
		}
	}
	return nil
}

// hold protects a folder that stands at /tmp, where no rule can be put over its
// names: what is there and tools outside obey is told, and what is missing is kept
// from coming into being. Repositories further below are not looked for: commands
// make them there.
func (g *gathering) hold(folder string) (obeyed string) {
	paths, _ := g.outside.Protected() // what is wrong there is told elsewhere
	for _, n := range sandbox.ProtectedNames() {
		at := filepath.Join(folder, n)
		_, err := os.Lstat(at)
		paths = append(paths, gitpaths.Path{Path: at, Missing: errors.Is(err, fs.ErrNotExist), Why: whyName})
	}
	for at := folder; ; at = filepath.Dir(at) {
		if r, err := gitpaths.Open(at); r != nil && err == nil {
			more, _ := r.Protected(g.outside)
			paths = append(paths, more...)
		}
		if at == "/" {
			break
		}
	}
	for _, p := range paths {
		switch {
		case !p.Missing && (hostfacts.Below(p.Path, folder) || p.IsDir && hostfacts.Below(folder, p.Path)):
			return fmt.Sprintf("%s (%s)", p.Path, p.Why)
		case !hostfacts.Below(p.Path, folder):
		case g.reachable(p.Path):
			g.claim(claim{Claim: guard.Claim{Path: p.Path, Why: p.Why}})
		default:
			g.late = append(g.late, claim{Claim: guard.Claim{Path: p.Path, Why: p.Why}})
		}
	}
	return ""
}
