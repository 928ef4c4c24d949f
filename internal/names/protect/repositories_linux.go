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
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/names/gitstate"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/guard"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A workTree is what was found out about a directory: its repository or nil, its protected
// paths, and the errors of both.
type workTree struct {
	dir      string
	repo     *git.Repository
	openErr  error
	paths    []git.Path
	pathsErr error
}

// workTree inspects a directory once: several rules ask about it.
func (g *inspection) workTree(dir string) *workTree {
	if w := g.work[dir]; w != nil {
		return w
	}
	w, open := &workTree{dir: dir}, git.OpenReal
	if g.nested {
		open = git.Open // a command may have put a link on the way since it was found
	}
	if w.repo, w.openErr = open(dir); w.repo != nil && w.openErr == nil {
		w.paths, w.pathsErr = w.repo.Protected(g.outside)
	}
	g.work[dir] = w
	return w
}

// protectWork protects the repository whose work tree a writable root is. Where there is
// none, none can be created without the grant.
func (g *inspection) protectWork(root string) error {
	link := filepath.Join(root, ".git")
	st, err := os.Lstat(link)
	switch {
	case err == nil:
		if err := notProtectable(link, st.Mode()); err != nil {
			return err
		}
		if err := g.protectRepository(root, true); err != nil {
			return err
		}
		w := g.workTree(root)
		if own := func(o workTree) bool { return o.dir == root }; w.repo != nil && !w.repo.Usable() &&
			!slices.ContainsFunc(g.granted, own) {
			g.granted = append(g.granted, workTree{dir: root}) // git would take the root for a bare one
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return uninspected(link, err, "")
	}
	if w := g.workTree(root); w.repo != nil || w.openErr != nil {
		return g.protectRepository(root, true) // a bare one
	}
	if !g.git {
		g.claim(claim{Claim: guard.Claim{Path: link, Why: whyNewRepo},
			grant: sandbox.Grant{Name: GrantGit}.String()})
		g.granted = append(g.granted, workTree{dir: root})
		return nil
	}
	// The grant is for the repository around the workspace then.
	for at := root; at != "/"; {
		at = filepath.Dir(at)
		if st, err := os.Lstat(filepath.Join(at, ".git")); err == nil &&
			(st.IsDir() || st.Mode().IsRegular()) {
			return g.protectRepository(at, true)
		}
	}
	return nil
}

// protectNested protects the repositories that a search found below a root. Those that are
// read-only may have protected paths that are writable.
func (g *inspection) protectNested(root string, found git.Found) error {
	g.nested = true
	defer func() { g.nested = false }()
	if err := g.closeShut(root, found.Shut); err != nil {
		return err
	}
	if err := g.protectFound(found.Repositories); err != nil {
		return err
	}
	if !found.Complete {
		g.partial = true
		if g.scans.first("partial\x00" + root) {
			g.warn(fmt.Errorf("%s has too many directories: git repositories from %s on were not "+
				"searched for; the observer denies changes to them, and without it nothing does "+
				"(this warning is not repeated)",
				root, found.Stopped))
		}
	}
	return nil
}

// protectOne protects a repository that a search found.
func (g *inspection) protectOne(work string) error {
	if r, ruled := g.rules[filepath.Join(work, ".git")]; ruled && r.Level == sandbox.LevelWrite {
		return nil // an entry of the policy opens it
	}
	if g.alone && closed(work) {
		return nil // the command cannot get there either, and nothing could be mounted there
	}
	err := g.protectRepository(work, false)
	if _, gone := os.Lstat(filepath.Join(work, ".git")); err != nil && errors.Is(gone, fs.ErrNotExist) {
		return nil // it was removed since it was found, as in a shared /tmp
	}
	return err
}

// closeHung makes mounts read-only whose server does not answer: repositories in them cannot be
// found. Nothing looks at them, which would wait for the server.
func (g *inspection) closeHung(hung []string) {
	for _, at := range hung {
		if g.level(at) != sandbox.LevelWrite {
			continue
		}
		g.rules[at] = plan.Rule{Spot: plan.Spot{Path: at, Kind: plan.KindDirectory}, Level: sandbox.LevelRead,
			Why: whyHung, Auto: true}
		g.replaceable = append(g.replaceable, at)
		g.warn(fmt.Errorf("the file system at %s does not answer, so it was not looked at and is read-only in this run", at))
	}
}

// warnHung names the mounts that are hidden because deny patterns could not be looked for in them.
func (g *inspection) warnHung() {
	for _, r := range g.sorted() {
		if r.Why == whyHung {
			g.warn(fmt.Errorf("the file system at %s does not answer, so it was not searched "+
				"for what a pattern denies, and is hidden in this run", r.Path))
		}
	}
}

// maxShut is how many directories that may not be listed are closed one by one.
const maxShut = 256

// closeShut makes directories that may not be listed read-only, with all that is in them: a
// repository there could be found by its name alone. Those that let no one in but another user
// need nothing.
func (g *inspection) closeShut(root string, dirs []string) error {
	dirs = slices.DeleteFunc(slices.Clone(dirs), func(d string) bool {
		return closed(d) ||
			g.level(d) != sandbox.LevelWrite
	})
	if len(dirs) > maxShut {
		return &executor.RootError{
			Path: root, Why: fmt.Sprintf("holds %d directories that cannot be listed, such as %s, so repositories in them cannot be found", len(dirs), dirs[0]),
			Fix: "make them readable (chmod -R u+r), or leave the directory out",
		}
	}
	for _, d := range dirs {
		if err := g.readOnly(d, whyShut); err != nil {
			return err
		}
		g.warn(fmt.Errorf("%s cannot be listed, so it is read-only in this run: repositories in it cannot be found; chmod u+r %s makes it writable", d, text.Word(d)))
	}
	return nil
}

// closed reports whether a directory on the way to a path belongs to another user and lets no one
// else in. To root in a user namespace that maps root alone it is closed as to other users.
func closed(path string) bool {
	for at := path; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		const others = 0o011 // may enter: its group, and all
		if unix.Lstat(at, &st) == nil && int(st.Uid) != os.Geteuid() && st.Mode&others == 0 {
			return true
		}
		if at == "/" {
			return false
		}
	}
}

// protectRepository adds the rules for one repository. Own says that it is the one of a
// workspace: a nested one could have been created by a command before, and what it leads
// to is only followed inside of the workspace.
func (g *inspection) protectRepository(work string, own bool) error {
	if !own && !g.git {
		return g.closeRepository(work)
	}
	w := g.workTree(work)
	r := w.repo
	if r == nil || w.openErr != nil {
		// Git cannot read it either. It stays as it is.
		if err := g.warnGit(w.openErr); err != nil {
			return err
		}
		if link := filepath.Join(work, ".git"); g.level(link) == sandbox.LevelWrite {
			return g.readOnly(link, whyGitDir)
		}
		return nil
	}
	if g.git {
		paths, err := r.Shut(g.outside)
		why := g.ungrantable(r, own, paths, err)
		if why == "" {
			return g.grant(w, paths)
		}
		if own {
			g.warn(fmt.Errorf("--grant git has no effect in %s: %s", r.Work, why))
		}
	}
	if err := g.warnGit(w.pathsErr); err != nil {
		return err
	}
	return g.close(w.paths)
}

// closeRepository adds the rules for a nested repository without the grant, of which there
// can be many.
func (g *inspection) closeRepository(work string) error {
	r, err := git.Open(work)
	if r == nil || err != nil {
		if err := g.warnGit(err); err != nil {
			return err
		}
		return g.readOnly(filepath.Join(work, ".git"), whyGitDir)
	}
	paths, err := r.Protected(g.outside)
	if err := g.warnGit(err); err != nil {
		return err
	}
	return g.close(paths)
}

// ungrantable says why the grant git cannot be given for a repository.
func (g *inspection) ungrantable(r *git.Repository, own bool, paths []git.Path, err error) string {
	if err != nil {
		return "its protected paths cannot be determined: " + err.Error()
	}
	for _, dir := range []string{r.Dir, r.Common} {
		// No grant opens what an entry of the policy has closed.
		if e, ok := g.nearest(dir); ok && (e.Level == sandbox.LevelDeny ||
			e.Level == sandbox.LevelRead && !e.Auto) {
			return fmt.Sprintf("an entry of the policy denies writing to %s, and to the git directory %s with it", e.Path, dir)
		}
		if g.level(dir) != sandbox.LevelWrite && (!own && !g.submodule(r) || !mutual(r)) {
			return fmt.Sprintf("its git directory %s is outside of the workspace and does not point back to it; %s opens it", dir, sandbox.Grant{Path: dir, Level: sandbox.LevelWrite})
		}
	}
	for _, p := range paths {
		inside := hostfacts.Below(p.Path, r.Dir) || hostfacts.Below(p.Path, r.Common)
		if p.Symlink && !(g.mounts && g.fixes) && (inside || g.level(p.Path) == sandbox.LevelWrite) {
			return fmt.Sprintf("%s (%s) is a symbolic link, which a command could change; replace it by what it points to", p.Path, p.Why)
		}
	}
	return ""
}

// submodule reports whether the git directory of a repository is among those of the submodules of one that
// the grant is given for. Commands cannot make one there.
func (g *inspection) submodule(r *git.Repository) bool {
	return slices.ContainsFunc(g.granted, func(o workTree) bool {
		return o.repo != nil && (hostfacts.Below(r.Dir, filepath.Join(o.repo.Common, "modules")) ||
			hostfacts.Below(r.Dir, filepath.Join(o.repo.Dir, "modules")))
	})
}

// pointerBound is how many bytes a file may have that points back. Another command may have
// written it, or put a named pipe there.
const pointerBound = 1 << 20

// mutual reports whether the git directory of a work tree points back to it. A pointer
// that leads out of the workspace and was created by a command does not.
func mutual(r *git.Repository) bool {
	// A directory that names another one as the shared one must be a work tree of it;
	// otherwise a command could name the directory of any repository.
	if r.Common != r.Dir && filepath.Dir(r.Dir) != filepath.Join(r.Common, "worktrees") {
		return false
	}
	if !r.Pointer {
		return true // it lies in the work tree
	}
	if text, err := git.ReadFile(filepath.Join(r.Dir, "gitdir"), pointerBound); err == nil {
		if back, _, _ := strings.Cut(string(text), "\n"); back != "" {
			if !filepath.IsAbs(back) { // since git 2.48
				back = filepath.Join(r.Dir, back)
			}
			return hostfacts.RealPath(back) == r.Link
		}
	}
	text, err := git.ReadFile(filepath.Join(r.Dir, "config"), pointerBound)
	if err != nil {
		return false
	}
	entries, broken := gitstate.ParseConfig(text)
	back := ""
	for _, e := range entries {
		if e.Key == "core.worktree" {
			back = e.Value
		}
	}
	if broken != 0 || back == "" {
		return false
	}
	if !filepath.IsAbs(back) {
		back = filepath.Join(r.Dir, back)
	}
	return hostfacts.RealPath(back) == r.Work
}

// grant opens a repository except for some paths.
func (g *inspection) grant(w *workTree, closed []git.Path) error {
	r := w.repo
	for _, dir := range []string{r.Dir, r.Common} {
		if g.level(dir) == sandbox.LevelWrite {
			continue
		}
		spot, err := hostfacts.Look(dir)
		if err != nil {
			return uninspected(dir, err, "")
		}
		g.rules[dir] = plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Why: whyGrant}
		g.roots = append(g.roots, dir)
	}
	g.granted = append(g.granted, workTree{dir: r.Work, repo: r})
	if err := g.close(closed); err != nil {
		return err
	}
	// Git creates this file first when it writes its configuration, and then cannot
	// rename it over the old one.
	config := filepath.Join(r.Common, "config")
	if rule, ok := g.rules[config]; ok && rule.Level == sandbox.LevelRead {
		g.claim(claim{
			Claim:  guard.Claim{Path: config + ".lock", ReportOnly: true, Why: "git configuration"},
			writes: config,
			grant:  sandbox.Grant{Path: config, Level: sandbox.LevelWrite}.String(),
		})
	}
	return nil
}

// protectAbove protects the paths in a writable root that belong to the repositories above
// it: their configuration can name hooks or files there.
func (g *inspection) protectAbove(root string) error {
	for at := root; at != "/"; {
		at = filepath.Dir(at)
		w := g.workTree(at)
		if err := g.warnGit(w.openErr); err != nil {
			return err
		}
		if w.repo == nil || slices.ContainsFunc(g.granted,
			func(o workTree) bool { return o.dir == w.repo.Work && o.repo != nil }) {
			continue // none, or its paths are closed with the grant
		}
		if err := g.warnGit(w.pathsErr); err != nil {
			return err
		}
		inside := slices.DeleteFunc(slices.Clone(w.paths),
			func(p git.Path) bool { return !hostfacts.Below(p.Path, root) })
		if err := g.close(inside); err != nil {
			return err
		}
	}
	return nil
}

// closeRoot makes a workspace read-only that lies in something protected, such as a git
// directory or its hooks as the working directory, and reports whether it did: that it was
// chosen as the workspace does not say that it may be changed. A repository of its own in
// such a place, as some tools have, is not closed.
func (g *inspection) closeRoot(root string) (closed bool, err error) {
	if root != g.dir {
		return false, nil // an entry of the policy names it
	}
	of, grant := "", ""
	if n, at, ok := grants.BelowHome(g.homes, root); ok && !slices.Contains(g.seen.granted, n.Grant) &&
		!isFreeBin(grants.SeenTool{ToolName: n, Path: at}) {
		of = at + ", which other programs run or obey later"
		grant = sandbox.Grant{Name: n.Grant}.String() + ", or "
	}
	for at := root; at != "/" && of == ""; at = filepath.Dir(at) {
		if slices.Contains(sandbox.ProtectedNames(), filepath.Base(at)) {
			of = "the protected name " + at
			continue
		}
		if n, ok := grants.FindTool(filepath.Base(at)); ok && !slices.Contains(g.seen.granted, n.Grant) {
			of, grant = at+", which other programs run or obey later",
				sandbox.Grant{Name: n.Grant}.String()+", or "
			continue
		}
		w := g.workTree(at)
		if w.openErr != nil || w.repo == nil {
			continue
		}
		for _, p := range w.paths { // what is wrong there is reported elsewhere
			if p.IsDir && !p.Missing && hostfacts.Below(root, p.Path) &&
				!(w.repo.Bare && root == w.repo.Work) {
				of = fmt.Sprintf("%s (%s)", p.Path, p.Why)
				break
			}
		}
		if !w.repo.Bare {
			break // what is above says nothing about a work tree
		}
	}
	if of == "" {
		return false, nil
	}
	g.warn(fmt.Errorf("%s is read-only in this run, because it belongs to %s; "+
		"use %s%s from a directory above it", root, of, grant, sandbox.Grant{Path: root, Level: sandbox.LevelWrite}))
	return true, g.readOnly(root, whyName)
}

// protectUser protects the configuration of the user's git, where a writable root holds
// it: git reads it in every repository.
func (g *inspection) protectUser() error {
	paths, err := g.outside.Protected()
	if err := g.warnGit(err); err != nil {
		return err
	}
	return g.close(slices.DeleteFunc(paths, func(p git.Path) bool {
		if !p.Symlink || g.fixes {
			return false
		}
		if g.level(p.Path) == sandbox.LevelWrite {
			g.warn(fmt.Errorf("%s (%s) is a symbolic link that the command can change", p.Path, p.Why))
		}
		return true
	}))
}

// protectNamed protects the names of a root that entries of the policy are about. An entry
// that denies .git says nothing about git's protected paths elsewhere, and one for a missing
// name does not create that name.
func (g *inspection) protectNamed(w sandbox.WritableRoot, root string) error {
	for _, name := range slices.Concat(w.ReadOnly, w.Denied) {
		base := filepath.Base(name)
		if filepath.Dir(name) != w.Root || !slices.Contains(sandbox.ProtectedNames(), base) {
			continue
		}
		at := filepath.Join(root, base)
		_, ruled := g.rules[at]
		var err error
		switch {
		case !ruled && base != ".git":
			err = g.protect(at)
		case !ruled:
			g.claim(claim{Claim: guard.Claim{Path: at, Why: whyNewRepo}})
		case base == ".git":
			tree := g.workTree(root)
			if err = errors.Join(g.warnGit(tree.openErr), g.warnGit(tree.pathsErr)); err == nil {
				err = g.close(tree.paths)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
