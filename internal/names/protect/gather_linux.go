// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/guard"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A inspection is what was found at the paths of a policy, with what every policy protects.
type inspection struct {
	*ruleset
	base   sandbox.Level // of what no rule is about
	dir    string        // the working directory
	tmp    *plan.Tmp
	tmpAt  string // where sallyport mounts a /tmp; no file of the host exists below it
	mounts bool   // the level can mount something over what exists
	judged bool   // an observer judges each of its calls
	alone  bool   // the command has the rights of this user, and none of root's over others' files
	table  *hostfacts.MountTable

	git     bool // the grant git is given
	outside git.Outside
	work    map[string]*workTree
	granted []workTree // those that the grant is for; a missing repository may be created

	nested      bool     // rules that are added now are about nested repositories
	replaceable []string // such rules: builds replace nested repositories

	homes       []string // that are in writable roots, or around them
	claims      []claim
	unreachable []claim // in directories that are missing, too
	scans       *Scans  // may be nil
	early       *early  // the search for nested repositories that is under way, or nil
	partial     bool    // the search for nested repositories ended at its bound
	trusted     func(dir string) bool
	seen        seen // of what may appear and is then named
	warnings    []string
}

// A claim is a name that does not exist and that a command cannot create.
type claim struct {
	guard.Claim
	grant  string // what would permit it, for the report; empty when nothing does
	writes string // for a claim that only reports: what a command tries to write when the name appears
}

// hung returns the mounts below a directory whose server does not answer.
func (r *Request) hung(dir string) []string {
	if r.Table == nil {
		return nil
	}
	table, _ := r.Table.Table() // nil after an error, of which readMounts warns
	return table.Hung(dir)
}

// gather finds out what exists at the paths of a policy.
func gather(r *Request) (*inspection, error) {
	rules, err := newRuleset(r.Policy, false, r.Links || !r.Mounts, r.Scans.match, r.hung)
	if err != nil {
		return nil, err
	}
	if _, ok := rules.rules["/"]; ok {
		// What holds for the root is decided by the policy, not by a link.
		return nil, &executor.RootError{Path: "/",
			Why: "is the target of a symbolic link that the policy names",
			Fix: "name the directory itself"}
	}
	g := &inspection{
		ruleset: rules, base: r.Policy.Root, dir: hostfacts.RealPath(r.Dir), mounts: r.Mounts, alone: r.Alone,
		judged: r.Judged && r.Mounts,
		git:    slices.Contains(r.Policy.Named, GrantGit), outside: git.Surroundings(os.LookupEnv).AtOnce(),
		work: map[string]*workTree{},
		seen: seen{granted: r.Policy.Named, scans: r.Scans}, scans: r.Scans, trusted: r.Trusted,
	}
	g.readMounts(r.Table)
	g.warnHung()
	g.searchEarly(r.Policy)
	if r.Mounts { // at another level nothing hides them, and the result says so
		g.copying = r.Copies
		if err := g.hideCredentials(r.Policy, r.Homes, g.dir, r.Scans.secrets); err != nil {
			return nil, err
		}
	}
	if err := g.hideState(r.State, r.NoState); err != nil {
		return nil, err
	}
	if err := g.chooseTmp(r); err != nil {
		return nil, err
	}
	if err := g.showDir(); err != nil {
		return nil, err
	}
	if err := g.claimState(r); err != nil {
		return nil, err
	}
	if err := g.closeSettings(r); err != nil {
		return nil, err
	}
	if err := g.protectAll(r); err != nil {
		return nil, err
	}
	if err := cmp.Or(g.closeFixed(r.Fixed), g.closeOwn(r.Own)); err != nil {
		return nil, err
	}
	if err := g.showServices(r.Services); err != nil {
		return nil, err
	}
	g.closeAliases(append(g.sorted(), g.invisible...))
	if g.tmp != nil && g.tmp.Asked {
		if err := g.checkTmp(r.Tmp, g.tmp.Source); err != nil {
			return nil, err
		}
	}
	if r.Policy.Network == sandbox.NetworkHost {
		g.showResolver()
	}
	g.settleHidden()
	return g, g.checkSpellings()
}

// protectAll adds rules for the protected names of every writable root, for what their
// repositories lead to, and for the repositories nested in them. What the policy made
// read-only or denied already stays as it is.
func (g *inspection) protectAll(r *Request) error {
	if err := CheckNamed(r.Policy.Named); err != nil {
		return err
	}
	g.homes = g.allHomes(r.Homes)
	if g.mounts {
		if err := g.protectUser(); err != nil {
			return err
		}
	}
	for _, w := range r.Policy.Writable {
		root, ok := g.resolved[w.Root]
		if !ok || g.rules[root].Kind != plan.KindDirectory || root == g.tmpAt {
			continue // it is missing, a file, or the private /tmp: no names of the host's are in it
		}
		if controlGroups(root) {
			return &sandbox.UnsupportedError{
				Need: "rules outside the system's own directories", Have: root + " cannot be made writable",
				Hint: "leave /dev, /proc and /sys out of the policy",
			}
		}
		if hostfacts.Below(root, "/proc") || hostfacts.Below(root, "/sys") || root == "/dev" {
			continue // the plan refuses it
		}
		if err := g.protectRoot(root, w); err != nil {
			return err
		}
	}
	return g.protectHomes()
}

// protectHomes makes what shells, ssh, the desktop and tools run later out of home directories read-only,
// and claims what is missing of it.
func (g *inspection) protectHomes() error {
	for _, home := range g.homes {
		if g.tmpAt != "" && hostfacts.Below(home, g.tmpAt) && g.level(home) != sandbox.LevelWrite {
			continue // hidden by the private one
		}
		missing, seen, err := g.protectHome(home, g.seen.granted)
		if err != nil {
			return err
		}
		for _, at := range seen { // some are names at the top of a workspace, too
			if !slices.ContainsFunc(g.seen.names, func(o grants.SeenTool) bool { return o.Path == at.Path }) {
				g.seen.names = append(g.seen.names, at)
			}
		}
		for _, at := range missing {
			c := claim{Claim: guard.Claim{Path: at.path, Why: whyLater + at.grant},
				grant: sandbox.Grant{Name: at.grant}.String()}
			if at.deep {
				g.unreachable = append(g.unreachable, c)
			} else {
				g.claim(c)
			}
		}
	}
	return nil
}

// controlGroups reports whether a directory is one of control groups, or the one that they
// are mounted in: root could leave the limits of its command there.
func controlGroups(dir string) bool {
	if dir != "/" && hostfacts.Below("/sys/fs/cgroup", dir) && dir != "/sys" {
		return true // the plan refuses /sys
	}
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && (st.Type == unix.CGROUP_SUPER_MAGIC ||
		st.Type == unix.CGROUP2_SUPER_MAGIC)
}

// protectRoot adds the rules for one writable root. At a level without mounts, what exists
// cannot be covered, so it is only named, and what does not exist is watched.
func (g *inspection) protectRoot(root string, w sandbox.WritableRoot) error {
	if g.mounts {
		if closed, err := g.closeRoot(root); closed || err != nil {
			return err
		}
	}
	dotGit := false // an entry of the policy for .git itself says what it is
	for _, name := range w.Protected {
		base := filepath.Base(name)
		if base == ".git" && (g.mounts || g.git) {
			dotGit = true
		} else if err := g.protect(filepath.Join(root, base)); err != nil {
			return err
		}
	}
	if dotGit {
		if err := g.protectWork(root); err != nil {
			return err
		}
	}
	names, err := g.protectLater(root, g.seen.granted)
	g.seen.names, g.seen.tops = append(g.seen.names, names...), append(g.seen.tops, root)
	if err != nil || !g.mounts {
		return err
	}
	if err := g.protectNamed(w, root); err != nil {
		return err
	}
	if err := g.protectAbove(root); err != nil {
		return err
	}
	hung, found := g.search(root)
	g.closeHung(hung)
	g.seen.roots = append(g.seen.roots, searched{root, hung, found})
	return g.protectNested(root, found)
}

// An early search is one that began before its root was looked at.
type early struct {
	root  string
	hung  []string
	found chan git.Found
}

// searchEarly begins the search for nested repositories in the root of the working directory, which takes
// longest in a large tree, while the rest is looked at.
func (g *inspection) searchEarly(policy *sandbox.Resolved) {
	for _, w := range policy.Writable {
		root, ok := g.resolved[w.Root]
		if !g.mounts || !ok || !hostfacts.Below(g.dir, root) || g.rules[root].Kind != plan.KindDirectory ||
			slices.Contains([]string{"/", "/tmp", "/dev", "/proc", "/sys"}, root) {
			continue // protectAll may leave it out
		}
		g.early = &early{root, g.table.Hung(root), make(chan git.Found, 1)}
		go func(e *early) { e.found <- git.Scan(e.root, git.Limit{Skip: e.hung}) }(g.early)
		return
	}
}

// search searches a root for nested repositories, or waits for the search that is under way. It passes by
// the mounts whose server does not answer, and returns them.
func (g *inspection) search(root string) (hung []string, found git.Found) {
	if e := g.early; e != nil && e.root == root {
		g.early = nil
		return e.hung, <-e.found
	}
	hung = g.table.Hung(root)
	return hung, git.Scan(root, git.Limit{Skip: hung})
}

// add adds a rule.
func (g *inspection) add(r plan.Rule) {
	if g.ruleset.add(r) && g.nested {
		g.replaceable = append(g.replaceable, r.Path)
	}
}

// protect adds a protected name, or claims it when nothing exists there.
func (g *inspection) protect(real string) error {
	st, err := os.Lstat(real)
	if errors.Is(err, fs.ErrNotExist) {
		c := claim{Claim: guard.Claim{Path: real, Why: whyName}}
		switch filepath.Base(real) {
		case ".sallyport":
			c.Allowed = g.trusted
		case ".git":
			c = claim{Claim: guard.Claim{Path: real, Why: whyNewRepo},
				grant: sandbox.Grant{Name: GrantGit}.String()}
		}
		g.claim(c)
		return nil
	}
	if err != nil {
		return uninspected(real, err, "")
	}
	if err := notProtectable(real, st.Mode()); err != nil {
		return err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		return g.closeTarget(real, whyName, hintLink)
	}
	return g.closePath(git.Path{Path: real, IsDir: true, Why: whyName})
}

// closeTarget keeps a symbolic link at a name as it is, and closes what it leads to where the command
// could change that.
func (g *inspection) closeTarget(name, why, hint string) error {
	real, err := g.linked(name, why, hint)
	if err != nil || real == "" || slices.Contains(g.roots, real) {
		return err
	}
	at := git.Path{Path: real, Why: why}
	if spot, err := g.lookAt(real); err != nil {
		return uninspected(real, err, "")
	} else if at.Missing = spot.Kind == plan.KindMissing; spot.Kind == plan.KindOther {
		return nil
	}
	return g.close([]git.Path{at})
}

// readOnly makes a path read-only.
func (g *inspection) readOnly(name, why string) error {
	spot, err := g.look(name, sandbox.LevelRead)
	if err == nil && spot.Kind != plan.KindMissing {
		g.add(plan.Rule{Spot: spot, Level: sandbox.LevelRead, Why: why, Auto: true})
	}
	return err
}

// claim adds a claim.
func (g *inspection) claim(c claim) {
	if !slices.ContainsFunc(g.claims, func(o claim) bool { return o.Path == c.Path }) {
		g.claims = append(g.claims, c)
	}
}

// claimMissing claims a missing name, at once where it could be created in one step.
func (g *inspection) claimMissing(p git.Path) {
	c := claim{Claim: guard.Claim{Path: p.Path, Why: p.Why}}
	if st, err := os.Lstat(filepath.Dir(p.Path)); err == nil && st.IsDir() {
		g.claim(c)
	} else {
		g.unreachable = append(g.unreachable, c)
	}
}

// close makes paths of a repository read-only. Those that the command cannot write anyway
// need nothing.
func (g *inspection) close(paths []git.Path) error {
	for _, p := range paths {
		_, ruled := g.rules[p.Path]
		switch {
		case ruled, !g.writable(p.Path):
		case p.Symlink:
			if _, err := g.linked(p.Path, p.Why, hintLink); err != nil {
				return err
			}
		case p.Missing:
			g.claimMissing(p)
		default:
			if err := g.closePath(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// closePath makes a path that exists read-only. The directories on the way to it are resolved, so that
// none has to be looked at; the launch refuses to follow a link that has taken the place of one since.
func (g *inspection) closePath(p git.Path) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(p.Path, &st); err != nil {
		return g.readOnly(p.Path, p.Why)
	}
	spot := hostfacts.SpotOf(p.Path, &st)
	if spot.Kind == plan.KindOther {
		return g.readOnly(p.Path, p.Why)
	}
	g.add(plan.Rule{Spot: spot, Level: sandbox.LevelRead, Why: p.Why, Auto: true})
	return nil
}

// warn adds what a user should know and the command can do without; nil adds nothing.
func (g *inspection) warn(err error) {
	if err != nil {
		g.warnings = append(g.warnings, text.Line(err.Error()))
	}
}

// warnGit is warn for what is wrong with a repository, and returns an error where something that
// git obeys exists and could not be read: what else git obeys because of it is not known. What
// belongs to another user who lets no one in is no file of the user's git, and no command can
// change that.
func (g *inspection) warnGit(err error) error {
	path, why := git.Unreadable(err)
	var config *git.ConfigError
	switch {
	case path == "", closed(path) && !errors.As(err, &config):
		g.warn(err)
	case !closed(path):
		return &executor.RootError{
			Path: path, Why: "cannot be read, so the files that git uses because of it are unknown: " +
				hostfacts.Reason(why),
			Fix: "make it readable, or move it away", Err: err,
		}
	}
	return nil
}

// level returns the level of a path by the rules so far.
func (g *inspection) level(name string) sandbox.Level {
	r, ok := g.nearest(name)
	if !ok || r.Path == g.tmpAt && name != r.Path {
		return g.base
	}
	return r.Level
}

// pin keeps the directories above everything that is restricted in a writable root where
// they are. In a directory that was moved, a protected path would not be found by the next
// run. What cannot be listed is found wherever it is.
func (g *inspection) pin() error {
	for _, r := range g.sorted() {
		if r.Why == whyShut {
			continue
		}
		for at := filepath.Dir(r.Path); at != "/" && r.Level != sandbox.LevelWrite; at = filepath.Dir(at) {
			root, ok := g.rules[at]
			above := filepath.Dir(at)
			if g.level(at) != sandbox.LevelWrite || ok &&
				(above == g.tmpAt || g.level(above) != sandbox.LevelWrite) {
				break // it is a mount already, and so is everything above that needs it
			}
			if ok { // a root in another one needs no mount of its own otherwise
				root.Pin = true
				g.rules[at] = root
				continue
			}
			spot, err := hostfacts.Look(at)
			if err != nil {
				return uninspected(at, err, "")
			}
			why := "cannot be moved: " + strings.TrimPrefix(r.Path, at+"/") + " is in it"
			g.rules[at] = plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Pin: true, Why: why}
		}
	}
	return nil
}

// showResolver keeps the file that /etc/resolv.conf leads to visible for commands that use
// the host's network: on many systems it lies below /run, which is covered.
func (g *inspection) showResolver() {
	real := hostfacts.RealPath("/etc/resolv.conf")
	if _, ruled := g.rules[real]; ruled || !strings.HasPrefix(real, "/run/") {
		return
	}
	if s, err := hostfacts.Look(real); err == nil && s.Kind == plan.KindFile {
		g.add(plan.Rule{Spot: s, Level: sandbox.LevelRead, Why: "name servers"})
	}
}
