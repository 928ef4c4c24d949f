// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/guard"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Request says what [New] protects for one command.
type Request struct {
	Policy *sandbox.Resolved
	Dir    string // the working directory of the command
	// Mounts says that the sandbox level can mount something over what exists.
	Mounts bool
	// Alone says that the command has the rights of this user and, where this is root, none of
	// root's over files of others: a user namespace maps this user alone.
	Alone bool
	// Judged says that an observer judges each call of the command, and that the command can make
	// no mounts.
	Judged bool
	// Links says that it can also be mounted over a symbolic link, which is kept as it is.
	Links bool
	// Copies says that a copy can be mounted over a file of settings with a secret, which is hidden
	// otherwise.
	Copies bool

	Tmp        string   // what is mounted at /tmp: "private", "host" or an absolute path; empty is private
	PrivateTmp string   // the directory for "private"
	State      []string // the directories that hold sallyport's own state
	NoState    []string // names of such directories that are missing
	Homes      []string // home directories whose stores of secrets are hidden

	Settings     []string // directories of settings, which may be missing and behind links
	SettingsFile string   // a file of settings that the environment names, or ""
	Own          string   // the file of the program that starts the command, if it is sallyport, or ""

	// Fixed are files that approved commands run, and links to them: read-only, where that can be done.
	// Nil is none.
	Fixed []string

	// Services are what named grants open of this machine; nil is nothing.
	Services *grants.FoundServices

	// Trusted reports whether the user trusts the settings of the project in a directory, as they are there:
	// those stay where they appear. Nil trusts none.
	Trusted func(dir string) bool

	Scans *Scans // may be nil
	// Table is needed where mounts can cover something.
	Table *hostfacts.Mounts
	// Protector claims the names that are missing. Nil only looks and claims nothing.
	Protector *guard.Protector
}

// A Protection holds what is protected while one command runs: names that it cannot
// create, and the state of repositories whose directories it may write to. The nil
// Protection protects nothing.
type Protection struct {
	found     *inspection // after Started what Finish reads of it
	protector *guard.Protector
	held      *guard.Hold
	before    []*git.Snapshot
	remains   []string // of other runs, before those were taken
	seen      seen
	opened    []string         // paths in git directories that the policy itself makes writable
	walls     *inspection      // what Finish and the watch know of the rules; nothing changes it
	denials   []sandbox.Denial // written by Finish
}

// New looks at the paths of a policy and, with a Protector, claims what is missing. A path
// that cannot be looked at or protected is an error.
func New(r *Request) (*Protection, error) {
	// What is missing at one moment may exist at the next, when other programs work in the
	// same directories: then everything is inspected again.
	const attempts = 8
	for attempt := 1; ; attempt++ {
		p, err := newOnce(r)
		var exists *guard.ExistsError
		switch {
		case err == nil:
			return p, nil
		case attempt == attempts, !errors.As(err, &exists) && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
}

// newOnce is New, but fails when something appears or vanishes meanwhile.
func newOnce(r *Request) (*Protection, error) {
	g, err := gather(r)
	if err != nil {
		return nil, err
	}
	p := &Protection{found: g, protector: r.Protector, seen: g.seen}
	if err = p.hold(); err == nil {
		err = g.pin()
	}
	if err == nil {
		err = p.watch()
	}
	if err != nil {
		p.Release()
		return nil, err
	}
	return p, nil
}

// Rules returns the rules for the plan, in the order of their paths. No path has a symbolic
// link in it. Call it before [Protection.Started].
func (p *Protection) Rules() []plan.Rule { return p.found.sorted() }

// Closes returns why a file is closed to an access; nil is not. Call it before [Protection.Started].
func (p *Protection) Closes(a sandbox.Access) error {
	g, want := p.found, sandbox.LevelRead
	if a.Op == sandbox.Write {
		want = sandbox.LevelWrite
		for _, c := range slices.Concat(g.claims, g.unreachable) {
			if !c.ReportOnly && hostfacts.Below(a.Path, c.Path) {
				return fmt.Errorf("%s stays closed (%s)", text.Word(c.Path), c.Why)
			}
		}
	}
	if g.level(a.Path) >= want {
		return nil
	}
	r, _ := g.nearest(a.Path)
	return fmt.Errorf("%s stays %s (%s)", text.Word(cmp.Or(r.Path, "/")), levelWord(g.level(a.Path)),
		cmp.Or(r.Why, "the policy"))
}

// Tmp returns what is mounted at /tmp; nil is the host's own. Call it before
// [Protection.Started].
func (p *Protection) Tmp() *plan.Tmp { return p.found.tmp }

// Warnings returns what a user should know and the command can do without.
func (p *Protection) Warnings() []string {
	if p == nil {
		return nil
	}
	return p.found.warnings
}

// Hidden returns the grants for the stores of secrets that are hidden.
func (p *Protection) Hidden() []string {
	if p == nil {
		return nil
	}
	return p.found.hidden
}

// Observed returns what the observer's judge needs. Call it before [Protection.Started].
func (p *Protection) Observed() Names {
	if p == nil {
		return Names{}
	}
	g := p.found
	n := Names{Roots: g.roots, Partial: g.partial, NoMounts: !g.mounts}
	if g.tmpAt != "" {
		n.Free = []string{g.tmpAt}
	}
	for _, c := range slices.Concat(g.claims, g.unreachable) {
		if !c.ReportOnly {
			aliases, _ := g.table.Aliases(c.Path)
			n.Protected = append(append(n.Protected, c.Path), aliases...)
		}
	}
	for _, w := range g.granted {
		if w.repo != nil {
			n.Git = append(n.Git, w.repo.Dir, w.repo.Common)
			n.Opened = append(n.Opened, g.openedIn(w.repo)...)
		}
	}
	for name, r := range g.rules {
		n.Ruled = append(n.Ruled, name)
		if r.Why == whyHung && r.Level == sandbox.LevelDeny {
			n.Hung = append(n.Hung, name)
		}
	}
	for _, o := range g.seen.own {
		n.Own = append(n.Own, o.id)
	}
	n.Commits = g.git
	return n
}

// hold claims the names that were found missing.
func (p *Protection) hold() error {
	if p.protector == nil {
		return nil
	}
	g := p.found
	p.remains = p.protector.Remains() // before the snapshots
	for _, w := range g.granted {
		if w.repo != nil {
			p.opened = append(p.opened, g.openedIn(w.repo)...)
		}
		s, err := git.Take(w.dir, w.repo, g.outside, p.closed)
		if s == nil {
			return err
		}
		g.warn(err)
		p.before = append(p.before, s)
	}
	var claims []guard.Claim
	for _, c := range g.claims {
		claims = append(claims, c.Claim)
	}
	if g.mounts {
		claims = append(claims, g.covered()...)
	}
	if len(claims) == 0 && len(g.unreachable) == 0 && len(p.before) == 0 && p.remains == nil {
		return nil
	}
	var err error
	if p.held, err = p.protector.Hold(claims); err != nil {
		return err
	}
	g.warnings = append(g.warnings, p.held.Weaker()...)
	return nil
}

// watch has what the command plants in git directories, or makes to one, moved away at once, and
// remembers for other runs and the next start what there was before.
func (p *Protection) watch() error {
	g := p.found
	p.walls = &inspection{ruleset: &ruleset{}, base: g.base, tmpAt: g.tmpAt, mounts: g.mounts}
	if len(p.before) == 0 {
		return nil
	}
	p.walls.rules = maps.Clone(g.rules)
	for i, s := range p.before {
		if err := p.held.Remember(s, p.remains); err != nil {
			return err
		}
		repo := g.granted[i].repo != nil
		err := p.held.Watch(func() (harmful []git.Path, places []string) {
			harmful, places = s.Look()
			return slices.DeleteFunc(harmful, func(at git.Path) bool { return p.spared(at.Path) }), places
		}, repo)
		if err != nil && repo {
			return err
		}
		g.warn(err)
	}
	return nil
}

// spared reports whether what is at a path in a git directory stays: the command could not do
// it, or an entry of the policy allowed it.
func (p *Protection) spared(path string) bool {
	_, ruled := p.walls.rules[path]
	return ruled || p.closed(path)
}

// openedIn returns the paths inside of a repository's git directories that an entry of the
// policy makes writable: what a command does there is what the caller asked for.
func (g *inspection) openedIn(r *git.Repository) []string {
	var out []string
	for name, rule := range g.rules {
		inside := name != r.Dir && hostfacts.Below(name, r.Dir) || name != r.Common &&
			hostfacts.Below(name, r.Common)
		if inside && rule.Level == sandbox.LevelWrite && !rule.Auto && rule.Why != whyGrant {
			out = append(out, name)
		}
	}
	return out
}

// maxCovered bounds how many directories are watched for what is replaced in them; each
// takes a descriptor.
const maxCovered = 128

// covered claims what mounts will cover and must not be replaced meanwhile: that would
// remove the mount. The state of sallyport is not claimed, and nested repositories may be
// replaced by other commands, as builds do. Files that other programs run later are replaced by
// editors and by git outside: [Protection.New] names those.
func (g *inspection) covered() []guard.Claim {
	var claims []guard.Claim
	dirs := map[string]bool{}
	for _, r := range g.sorted() {
		dir := filepath.Dir(r.Path)
		writable := g.level(dir) == sandbox.LevelWrite
		switch {
		// also where it is visible a second time
		case slices.Contains(g.replaceable, r.Path), strings.Contains(r.Why, whyLater):
			continue
		case r.Level == sandbox.LevelDeny && r.Auto, r.Level == sandbox.LevelRead && !writable,
			r.Level == sandbox.LevelWrite:
			continue
		case g.tmpAt != "" && hostfacts.Below(r.Path, g.tmpAt) && !writable:
			continue
		}
		if dirs[dir] = true; len(dirs) > maxCovered {
			g.warn(fmt.Errorf("%s and later paths are not watched: another program that replaces them removes the mount over them", r.Path))
			break
		}
		claims = append(claims, guard.Claim{Path: r.Path, Dev: r.ID.Dev, Ino: r.ID.Ino, Why: r.Why})
	}
	return claims
}

// Started drops what is not needed any more when the command runs: only what
// [Protection.Finish] reads is left.
func (p *Protection) Started() {
	if p == nil {
		return
	}
	g := p.found
	p.found = &inspection{ruleset: &ruleset{hidden: g.hidden, copies: g.copies}, base: g.base, tmpAt: g.tmpAt,
		claims: g.claims, unreachable: g.unreachable, warnings: g.warnings}
}

// OnBroken has f called with the cause, in a goroutine of its own, when what a mount covers was
// replaced from outside.
func (p *Protection) OnBroken(f func(cause error)) {
	if p != nil && p.held != nil {
		p.held.OnBroken(f)
	}
}

// Finish inspects everything once more, when the process tree has ended, moves to
// quarantine what must not exist, and releases the claims.
func (p *Protection) Finish() ([]executor.Quarantined, error) {
	if p == nil || p.protector == nil { // nothing was claimed
		return nil, nil
	}
	var out []executor.Quarantined
	var errs []error
	if p.held != nil {
		found, err := p.held.Finish()
		errs = append(errs, err)
		for _, f := range found {
			c := p.claimOf(f.Path)
			if c.writes == "" {
				out = append(out, executor.Quarantined{Path: f.Path, MovedTo: f.MovedTo, Why: f.Why,
					Grant: c.grant})
				continue
			}
			// That the command did it is probable and not known.
			p.denials = append(p.denials, sandbox.Denial{
				Access: sandbox.Access{Op: sandbox.Write, Path: c.writes}, Errno: "EBUSY",
				Source: sandbox.Guessed, Grant: c.grant, Time: f.When,
			})
		}
	}
	absent := map[string]bool{}
	for _, c := range p.found.unreachable {
		dir := filepath.Dir(c.Path)
		gone, known := absent[dir]
		if !known {
			_, err := os.Lstat(dir)
			gone = errors.Is(err, fs.ErrNotExist)
			absent[dir] = gone
		}
		if !gone {
			errs = append(errs, p.quarantine(c.Path, c.Why, &out))
		}
	}
	for _, b := range p.before {
		paths, err := b.Check(p.closed)
		errs = append(errs, err)
		for _, at := range paths {
			if !p.spared(at.Path) {
				errs = append(errs, p.quarantine(at.Path, at.Why, &out))
			}
		}
	}
	p.Release()
	return out, errors.Join(errs...)
}

// closed reports whether what is at a path needs no look when the command has ended: it
// could not write there, or an entry of the policy allowed it to.
func (p *Protection) closed(path string) bool {
	g := p.walls
	if g == nil {
		g = p.found
	}
	if at := inOwn(p.seen.own, path); at != "" && path != at && !committable(path[len(at)+1:]) {
		return true // what the judge keeps can only have been removed
	}
	return g.level(path) != sandbox.LevelWrite ||
		slices.ContainsFunc(p.opened, func(at string) bool { return hostfacts.Below(path, at) })
}

// claimOf returns the claim for a path.
func (p *Protection) claimOf(path string) claim {
	for _, c := range p.found.claims {
		if c.Path == path {
			return c
		}
	}
	return claim{}
}

// Denials returns the writes that were noticed by what they left. They are known after
// Finish.
func (p *Protection) Denials() []sandbox.Denial {
	if p == nil {
		return nil
	}
	return p.denials
}

// quarantine moves what exists at a path to quarantine.
func (p *Protection) quarantine(name, why string, out *[]executor.Quarantined) error {
	f, err := p.protector.Quarantine(name, why)
	if errors.Is(err, syscall.ELOOP) {
		// No link was on the way when the command began. If something exists behind the
		// one that is there now, the link is moved.
		links := hostfacts.Links(filepath.Dir(name))
		if _, e := os.Stat(name); e != nil || len(links) == 0 {
			return nil //nolint:nilerr // nothing exists there
		}
		name = links[0].Path
		f, err = p.protector.Quarantine(name, why)
	}
	if err == nil && f.Kind != guard.KindGone {
		*out = append(*out, executor.Quarantined{Path: name, MovedTo: f.MovedTo, Why: why})
	}
	return err
}

// Lock returns the open file whose lock says that the claims are held; nil where there are
// none. As long as a copy of it is open, no other run settles what this one has left.
func (p *Protection) Lock() *os.File {
	if p == nil || p.held == nil {
		return nil
	}
	return p.held.Lock()
}

// Release releases the claims. It may be called twice.
func (p *Protection) Release() {
	if p == nil {
		return
	}
	if p.held != nil {
		p.held.Release()
		p.held = nil
	}
}
