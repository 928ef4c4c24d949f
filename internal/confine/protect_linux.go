// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/repo"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A claim is a name that does not exist and must not come into being while a
// command runs.
type claim struct {
	guard.Want
	// grant is the flag that would permit it, for the report; empty when none does.
	grant string
}

// Why protected names are protected, for the printed script and for reports.
const (
	whyName    = "protected name"
	whyNewRepo = "a new git repository: tools outside obey what is in it"
)

// scanner finds the nested repositories below a writable root.
type scanner func(root string) repo.Found

// protectAll adds rules for the protected names of every writable root, for what
// their repositories lead to, and for the repositories nested in them. A place
// that the policy made readable or denied already stays as it is.
func (g *gathering) protectAll(res *sandbox.Resolved, scan scanner) error {
	if err := checkNamed(res.Named); err != nil {
		return err
	}
	g.git = slices.Contains(res.Named, GrantGit)
	g.config = repo.UserConfig()
	for _, w := range res.Writable {
		root, err := filepath.EvalSymlinks(w.Root)
		if err != nil || !g.folder(root) {
			continue // skipped because it is missing, or a file, which has no names in it
		}
		opened := true // an entry for .git itself says what it is
		for _, name := range w.Protected {
			if filepath.Base(name) == ".git" {
				opened = false
				continue
			}
			if err := g.protect(filepath.Join(root, filepath.Base(name))); err != nil {
				return err
			}
		}
		if !opened {
			if err := g.workspace(root); err != nil {
				return err
			}
		}
		if err := g.nested(root, scan(root)); err != nil {
			return err
		}
	}
	return nil
}

// folder reports whether a rule of the policy stands for a folder.
func (g *gathering) folder(name string) bool {
	r, ok := g.rules[name]
	return ok && r.Kind == plan.KindFolder
}

// protect adds a protected name, or claims it when nothing stands there.
func (g *gathering) protect(real string) error {
	st, err := os.Lstat(real)
	if errors.Is(err, fs.ErrNotExist) {
		g.claim(claim{Want: guard.Want{Path: real, Placeholder: true, Why: whyName}})
		return nil
	}
	if err != nil {
		return &RootError{Path: real, Why: "cannot be looked at: " + reason(err)}
	}
	if !st.IsDir() && !st.Mode().IsRegular() {
		return &sandbox.UnsupportedError{
			Need: fmt.Sprintf("a folder or file at the protected name %s", real),
			Have: "it is a " + kindWord(st.Mode()),
			Hint: "a protected name that is a link cannot be kept from changing; replace it by what it points to, or move it away",
		}
	}
	return g.carve(real, sandbox.LevelRead, whyName)
}

// claim notes a name that must not come into being.
func (g *gathering) claim(c claim) {
	if !slices.ContainsFunc(g.claims, func(o claim) bool { return o.Path == c.Path }) {
		g.claims = append(g.claims, c)
	}
}

// workspace protects the repository whose work tree a writable root is. Where
// there is none, none may come into being without the grant.
func (g *gathering) workspace(root string) error {
	r, err := g.open(root)
	if err != nil {
		return err
	}
	switch {
	case r != nil:
		return g.repository(r, true)
	case !g.git:
		g.claim(claim{Want: guard.Want{Path: filepath.Join(root, ".git"), Why: whyNewRepo}, grant: "--grant git"})
		return nil
	}
	// The grant is for the repository around the workspace then.
	for at := filepath.Dir(root); ; at = filepath.Dir(at) {
		if r, err := g.open(at); err != nil || r != nil {
			if err != nil || g.level(r.Dir) == sandbox.LevelWrite {
				return err
			}
			return g.repository(r, true)
		}
		if at == "/" {
			return nil
		}
	}
}

// open looks for a repository. Its pointer may be anything in a nested one, but
// what cannot be understood cannot be protected in part.
func (g *gathering) open(work string) (*repo.Repository, error) {
	r, err := repo.Open(work)
	var odd *repo.LinkError
	if errors.As(err, &odd) {
		return nil, &sandbox.UnsupportedError{
			Need: fmt.Sprintf("a folder or file at the protected name %s", odd.Path),
			Have: odd.Have,
			Hint: "a protected name that is a link cannot be kept from changing; replace it by what it points to, or move it away",
		}
	}
	if err != nil {
		return nil, &RootError{Path: filepath.Join(work, ".git"), Why: "cannot be looked at: " + reason(err)}
	}
	return r, nil
}

// nested protects the repositories that a search found below a root, the ones
// higher up first.
func (g *gathering) nested(root string, found repo.Found) error {
	for _, work := range found.Works {
		if work == root || g.level(work) != sandbox.LevelWrite {
			continue
		}
		link := filepath.Join(work, ".git")
		if r, ok := g.rules[link]; ok && !r.Pin {
			continue // an entry of the policy, or done before
		}
		r, err := repo.Open(work)
		if err != nil || r == nil {
			// Nobody but an earlier command or the user made it so odd, and a tool
			// outside will fall over it as we do. It stays as it is.
			if err := g.carve(link, sandbox.LevelRead, "nested repository"); err != nil {
				return err
			}
			continue
		}
		if err := g.repository(r, false); err != nil {
			return err
		}
	}
	if !found.Complete {
		g.warnings = append(g.warnings, fmt.Sprintf(
			"%s was not searched whole for nested repositories: %d entries were looked at; the next run goes on from there", root, found.Scanned))
	}
	return nil
}

// repository adds the rules for one repository. Own says that its .git could not
// have been put there by a command, so that the grant may follow where it leads.
func (g *gathering) repository(r *repo.Repository, own bool) error {
	if !g.git {
		return g.shut(r.Protected(g.config))
	}
	for _, dir := range []string{r.Dir, r.Common} {
		if g.level(dir) == sandbox.LevelWrite {
			continue
		}
		if !own || !r.Mutual {
			// A pointer that leads out of the workspace could be anybody's.
			return g.shut(r.Protected(g.config))
		}
		spot, err := look(dir)
		if err != nil {
			return &RootError{Path: dir, Why: "cannot be looked at: " + reason(err)}
		}
		g.add(plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Why: "grant git"})
		g.roots = append(g.roots, dir)
	}
	g.opened = append(g.opened, r)
	return g.shut(r.Shut(g.config))
}

// shut makes places of a repository readable only. Those that lie where nothing
// can be written anyway need nothing.
func (g *gathering) shut(paths []repo.Path) error {
	for _, p := range paths {
		_, ruled := g.rules[p.Path]
		switch {
		case ruled, g.level(p.Path) != sandbox.LevelWrite:
			// An entry of the policy says what it is, or it cannot be written.
		case p.Missing:
			if g.reachable(p.Path) {
				g.claim(claim{Want: guard.Want{Path: p.Path, Placeholder: p.Folder, Why: p.Why}})
			}
		default:
			if err := g.carve(p.Path, sandbox.LevelRead, p.Why); err != nil {
				return err
			}
		}
	}
	return nil
}

// reachable reports whether the folder of a name exists, so that the name could
// come into being in one step and can be claimed.
func (g *gathering) reachable(name string) bool {
	var st syscall.Stat_t
	return syscall.Lstat(filepath.Dir(name), &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR
}

// level is the level of a path by the rules so far.
func (g *gathering) level(name string) sandbox.Level {
	for at := name; ; at = filepath.Dir(at) {
		if r, ok := g.rules[at]; ok {
			return r.Level
		}
		if at == "/" {
			return g.root
		}
	}
}

// pin keeps the folders above everything that is carved out of a writable root
// where they are. Moved away with a folder, a protected path would not be found
// by the next run.
func (g *gathering) pin() error {
	var carved []string
	for name, r := range g.rules {
		if r.Level < sandbox.LevelWrite {
			carved = append(carved, name)
		}
	}
	slices.Sort(carved)
	for _, name := range carved {
		for at := filepath.Dir(name); at != "/"; at = filepath.Dir(at) {
			if _, ok := g.rules[at]; ok || g.level(at) != sandbox.LevelWrite {
				break // it is a mount already, and so is everything above that needs it
			}
			spot, err := look(at)
			if err != nil {
				return &RootError{Path: at, Why: "cannot be looked at: " + reason(err)}
			}
			g.rules[at] = plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Pin: true, Why: "stays where it is: " + strings.TrimPrefix(name, at+"/") + " is in it"}
		}
	}
	return nil
}
