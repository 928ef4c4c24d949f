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
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/gitpaths"
	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A claim is a name that does not exist and must not come into being while a
// command runs.
type claim struct {
	guard.Claim
	// grant is the flag that would permit it, for the report; empty when none does.
	grant string
	// tries is the path that a command tries to write when the name appears, for
	// claims that only take notice.
	tries string
}

// Why protected names are protected, for the printed script and for reports.
const (
	whyName    = "protected name"
	whyGrant   = "grant git"
	whyNewRepo = "a new git repository: tools outside obey what is in it"
)

// An opened is a work tree that the grant git is for. A missing repository may
// come into being.
type opened struct {
	work string
	repo *gitpaths.Repository
}

// protectAll adds rules for the protected names of every writable root, for what
// their repositories lead to, and for the repositories nested in them. A place
// that the policy made readable or denied already stays as it is.
func (g *gathering) protectAll(res *sandbox.Resolved, scans *Scans) error {
	if err := CheckNamed(res.Named); err != nil {
		return err
	}
	g.git = slices.Contains(res.Named, GrantGit)
	g.outside = gitpaths.Surroundings(os.LookupEnv).AtOnce()
	g.auto = true
	defer func() { g.auto = false }()
	if !g.flat {
		if err := g.personal(); err != nil {
			return err
		}
	}
	for _, w := range res.Writable {
		root, err := g.eval(w.Root)
		if err != nil || !g.folder(root) || root == g.private {
			continue // skipped because it is missing, a file, or ours: no names of the host's are in it
		}
		if hostfacts.Below(root, "/proc") || hostfacts.Below(root, "/sys") || root == "/dev" {
			continue // the plan refuses it
		}
		if g.flat {
			if err := g.protectFlat(root, w.Protected); err != nil {
				return err
			}
			continue
		}
		err = scans.with(root, func(cache *gitpaths.Cache) error {
			g.outside.Cache = cache
			return g.protectRoot(root, w)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// protectFlat is for levels without mounts. What exists cannot be kept there, so it is
// only named; what does not exist is watched.
func (g *gathering) protectFlat(root string, protected []string) error {
	for _, name := range protected {
		name = filepath.Join(root, filepath.Base(name))
		if filepath.Base(name) == ".git" && g.git {
			if err := g.workspace(root); err != nil {
				return err
			}
			continue
		}
		if err := g.protect(name); err != nil {
			return err
		}
	}
	return nil
}

// protectRoot adds the rules for one writable root.
func (g *gathering) protectRoot(root string, w sandbox.WritableRoot) error {
	if shut, err := g.closed(root); shut || err != nil {
		return err
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
	if err := g.named(w, root); err != nil {
		return err
	}
	if err := g.around(root); err != nil {
		return err
	}
	return g.nested(root, gitpaths.Scan(root, g.outside.Cache, gitpaths.Limit{}))
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
		c := claim{Claim: guard.Claim{Path: real, Placeholder: true, Why: whyName}}
		if filepath.Base(real) == ".git" {
			c = claim{Claim: guard.Claim{Path: real, Why: whyNewRepo}, grant: "--grant git"}
		}
		g.claim(c)
		return nil
	}
	if err != nil {
		return &executor.RootError{Path: real, Why: "cannot be looked at: " + hostfacts.Reason(err)}
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && g.placeholder(real, sys) {
		g.claim(claim{Claim: guard.Claim{Path: real, Placeholder: true, Why: whyName}})
		return nil
	}
	if !st.IsDir() && !st.Mode().IsRegular() {
		return &sandbox.UnsupportedError{
			Need: fmt.Sprintf("a folder or file at the protected name %s", real),
			Have: "it is a " + hostfacts.KindWord(st.Mode()),
			Hint: "a protected name that is a link cannot be kept from changing; replace it by what it points to, or move it away",
		}
	}
	return g.carve(real, sandbox.LevelRead, whyName)
}

// placeholder reports whether what stands at a name looks like the folder with
// which another run holds its place, whatever the umask was. That one goes when its
// run ends, so it is claimed like a missing name; whether it is one is in the journal.
func (g *gathering) placeholder(name string, st *syscall.Stat_t) bool {
	return st.Mode&^0o555 == syscall.S_IFDIR && st.Nlink <= 2 && int(st.Uid) == os.Geteuid() && !slices.Contains(g.present, name)
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
	link := filepath.Join(root, ".git")
	st, err := os.Lstat(link)
	switch {
	case err == nil && !st.IsDir() && !st.Mode().IsRegular():
		return g.protect(link) // refuses
	case err == nil:
		return g.repository(root, true)
	case !errors.Is(err, fs.ErrNotExist):
		return &executor.RootError{Path: link, Why: "cannot be looked at: " + hostfacts.Reason(err)}
	}
	if r, err := gitpaths.Open(root); r != nil || err != nil {
		return g.repository(root, true) // a bare one
	}
	if !g.git {
		g.claim(claim{Claim: guard.Claim{Path: link, Why: whyNewRepo}, grant: "--grant git"})
		g.opened = append(g.opened, opened{work: root})
		return nil
	}
	// The grant is for the repository around the workspace then.
	for at := filepath.Dir(root); ; at = filepath.Dir(at) {
		if st, err := os.Lstat(filepath.Join(at, ".git")); err == nil && (st.IsDir() || st.Mode().IsRegular()) {
			return g.repository(at, true)
		}
		if at == "/" {
			return nil
		}
	}
}

// nested protects the repositories that a search found below a root, the ones
// higher up first. What those that cannot be written obey may lie where it can.
func (g *gathering) nested(root string, found gitpaths.Found) error {
	g.inner = true
	defer func() { g.inner = false }()
	for _, work := range found.Repositories {
		if r, ruled := g.rules[filepath.Join(work, ".git")]; ruled && r.Level == sandbox.LevelWrite {
			continue // an entry of the policy opens it
		}
		if err := g.repository(work, false); err != nil {
			return err
		}
	}
	if !found.Complete {
		g.partly = true
		g.warnings = append(g.warnings, fmt.Sprintf(
			"%s was not searched whole for nested repositories: this run stopped at %s, the next one goes on from there", root, found.Stopped))
	}
	return nil
}

// repository adds the rules for one repository. Own says that it is the one of a
// workspace: a nested one could have been made by a command before, and what it
// leads to is only followed inside of the workspace.
func (g *gathering) repository(work string, own bool) error {
	if !own && !g.git {
		return g.foreign(work)
	}
	s := g.see(work)
	r, err := s.repo, s.openErr
	if r == nil || err != nil {
		// Git cannot make anything of it either. It stays as it is.
		if err != nil {
			g.warn(err)
		}
		if link := filepath.Join(work, ".git"); g.level(link) == sandbox.LevelWrite {
			return g.carve(link, sandbox.LevelRead, "git folder")
		}
		return nil
	}
	if g.git {
		paths, err := r.Shut(g.outside)
		if why := g.ungrantable(r, own, paths, err); why == "" {
			return g.grant(r, paths)
		} else if own {
			g.warnings = append(g.warnings, "the grant git is not given for "+r.Work+": "+why)
		}
	}
	if s.pathsErr != nil {
		g.warn(s.pathsErr)
	}
	return g.shut(s.paths)
}

// foreign adds the rules for a nested repository that stays shut, of which there can
// be many.
func (g *gathering) foreign(work string) error {
	r, paths, err := gitpaths.OpenProtected(work, g.outside)
	if err != nil {
		g.warn(err)
	}
	if r == nil {
		return g.carve(filepath.Join(work, ".git"), sandbox.LevelRead, "git folder")
	}
	return g.shut(paths)
}

// ungrantable says why the grant git cannot be given for a repository.
func (g *gathering) ungrantable(r *gitpaths.Repository, own bool, paths []gitpaths.Path, err error) string {
	if err != nil {
		return "what git obeys there is not known: " + err.Error()
	}
	for _, dir := range []string{r.Dir, r.Common} {
		if name := g.kept(dir); name != "" {
			return fmt.Sprintf("an entry of the policy keeps %s from being written, and the git folder %s with it", name, dir)
		}
		if g.level(dir) != sandbox.LevelWrite && (!own || !mutual(r)) {
			return fmt.Sprintf("its git folder %s lies outside of the workspace and does not point back to it; --rw with its path opens it", dir)
		}
	}
	for _, p := range paths {
		inside := hostfacts.Below(p.Path, r.Dir) || hostfacts.Below(p.Path, r.Common)
		if p.Symlink && (inside || g.level(p.Path) == sandbox.LevelWrite) {
			return fmt.Sprintf("%s (%s) is a symbolic link, which a command could turn elsewhere; replace it by what it points to", p.Path, p.Why)
		}
	}
	return ""
}

// kept names the entry of the policy by which a path cannot be written; it is empty
// when the policy says nothing about it. No grant opens what an entry has shut.
func (g *gathering) kept(name string) string {
	for at := name; ; at = filepath.Dir(at) {
		if r, ok := g.rules[at]; ok {
			if r.Level == sandbox.LevelDeny || r.Level == sandbox.LevelRead && !r.Auto {
				return at
			}
			return ""
		}
		if at == "/" {
			return ""
		}
	}
}

// mutual reports whether the git folder of a work tree points back to it. A pointer
// that leads out of the workspace and was put there by a command does not.
func mutual(r *gitpaths.Repository) bool {
	// A folder that names another one as the shared one must be a work tree of it;
	// otherwise anybody could name the folder of somebody else's repository.
	if r.Common != r.Dir && filepath.Dir(r.Dir) != filepath.Join(r.Common, "worktrees") {
		return false
	}
	if !r.Pointer {
		return true // it lies in the work tree
	}
	if back, ok := firstLine(filepath.Join(r.Dir, "gitdir")); ok {
		return hostfacts.RealPath(back) == r.Link
	}
	text, err := os.ReadFile(filepath.Join(r.Dir, "config"))
	if err != nil {
		return false
	}
	entries, err := gitpaths.ParseConfig(text)
	if err != nil {
		return false
	}
	back := ""
	for _, e := range entries {
		if e.Key == "core.worktree" {
			back = e.Value
		}
	}
	if back == "" {
		return false
	}
	if !filepath.IsAbs(back) {
		back = filepath.Join(r.Dir, back)
	}
	return hostfacts.RealPath(back) == r.Work
}

// firstLine reads a file that holds one path.
func firstLine(name string) (string, bool) {
	b, err := os.ReadFile(name)
	line, _, _ := strings.Cut(string(b), "\n")
	return line, err == nil && filepath.IsAbs(line)
}

// grant opens a repository except for what is shut.
func (g *gathering) grant(r *gitpaths.Repository, paths []gitpaths.Path) error {
	for _, dir := range []string{r.Dir, r.Common} {
		if g.level(dir) == sandbox.LevelWrite {
			continue
		}
		spot, err := hostfacts.Look(dir)
		if err != nil {
			return &executor.RootError{Path: dir, Why: "cannot be looked at: " + hostfacts.Reason(err)}
		}
		g.rules[dir] = plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Why: whyGrant}
		g.roots = append(g.roots, dir)
	}
	g.opened = append(g.opened, opened{work: r.Work, repo: r})
	if err := g.shut(paths); err != nil {
		return err
	}
	// Git makes this file first when it writes its configuration, and then cannot
	// put it in the place of the old one.
	config := filepath.Join(r.Common, "config")
	if rule, ok := g.rules[config]; ok && rule.Level == sandbox.LevelRead {
		g.claim(claim{
			Claim: guard.Claim{Path: config + ".lock", ReportOnly: true, Why: "git configuration"}, tries: config,
			grant: sandbox.Grant{Path: config, Level: sandbox.LevelWrite}.String(),
		})
	}
	return nil
}

// shut makes places of a repository readable only. Those that lie where nothing
// can be written anyway need nothing.
func (g *gathering) shut(paths []gitpaths.Path) error {
	for _, p := range paths {
		_, ruled := g.rules[p.Path]
		switch {
		case ruled, g.level(p.Path) != sandbox.LevelWrite:
			// An entry of the policy says what it is, or it cannot be written.
		case p.Symlink:
			return &sandbox.UnsupportedError{
				Need: fmt.Sprintf("a fixed place for %s (%s)", p.Path, p.Why),
				Have: "it is a symbolic link, which the command could turn elsewhere",
				Hint: "replace the link by the folder or file itself",
			}
		case p.Missing && g.reachable(p.Path):
			g.claim(claim{Claim: guard.Claim{Path: p.Path, Placeholder: p.IsDir, Why: p.Why}})
		case p.Missing:
			g.late = append(g.late, claim{Claim: guard.Claim{Path: p.Path, Why: p.Why}})
		default:
			if err := g.shutOne(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// shutOne makes a place that exists readable only, or claims it where what stands
// there looks like a placeholder. The folders on the way to it are resolved, which
// spares asking about each; the launch refuses to follow a link that has taken the
// place of one since.
func (g *gathering) shutOne(p gitpaths.Path) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(p.Path, &st); err == nil {
		spot := hostfacts.SpotOf(p.Path, &st)
		switch {
		case p.IsDir && g.placeholder(p.Path, &st):
			g.claim(claim{Claim: guard.Claim{Path: p.Path, Placeholder: true, Why: p.Why}})
			return nil
		case spot.Kind != plan.KindOther:
			g.add(plan.Rule{Spot: spot, Level: sandbox.LevelRead, Why: p.Why, Auto: true})
			return nil
		}
	}
	return g.carve(p.Path, sandbox.LevelRead, p.Why)
}

// warn keeps what people should know and the command can do without.
func (g *gathering) warn(err error) {
	g.warnings = append(g.warnings, err.Error())
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
		if r, ok := g.rules[at]; ok && at == g.private && name != at {
			return g.base // the host's files are not there
		} else if ok {
			return r.Level
		}
		if at == "/" {
			return g.base
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
			spot, err := hostfacts.Look(at)
			if err != nil {
				return &executor.RootError{Path: at, Why: "cannot be looked at: " + hostfacts.Reason(err)}
			}
			g.rules[at] = plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Pin: true, Why: "stays where it is: " + strings.TrimPrefix(name, at+"/") + " is in it"}
		}
	}
	return nil
}
