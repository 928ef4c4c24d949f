// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/gitpaths"
	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/observer"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Request says what [New] protects for one command.
type Request struct {
	Policy *sandbox.Resolved
	Dir    string // the working directory of the command
	// Mounts says that the sandbox level can mount something over what exists.
	Mounts bool

	Tmp        string   // what stands at /tmp: "private", "host" or an absolute path; empty is private
	PrivateTmp string   // the directory for "private"
	State      []string // the directories that hold sallyport's own state

	Scans *Scans // may be nil
	// Keeper claims the names that are missing. Nil only looks and claims nothing.
	Keeper *guard.Keeper
}

// A Protection holds what is protected while one command runs: names that it cannot
// create, and the state of repositories whose directories it may write to. The nil
// Protection protects nothing.
type Protection struct {
	found    *gathering // of what was found, nil after Started
	warnings []string
	keeper   *guard.Keeper
	held     *guard.Hold
	claims   []claim
	late     []claim // names that can only be looked at when everything is over
	before   []*gitpaths.Snapshot
	given    []string         // places in git directories that the policy itself makes writable
	denials  []sandbox.Denial // written by Finish
}

// New looks at the paths of a policy and, with a Keeper, claims what is missing. Every
// path in the rules is free of symbolic links. What claims cannot be made for is an error.
func New(r *Request) (*Protection, error) {
	if r.Keeper != nil && !r.Mounts {
		// Nothing can be mounted over placeholders of another level.
		if err := r.Keeper.DropUnused(); err != nil {
			return nil, err
		}
	}
	// What is missing at one moment may exist at the next, when others work in the
	// same directories: then everything is looked at anew.
	const attempts = 8
	var present []string
	for attempt := 1; ; attempt++ {
		g, err := collect(r, present)
		if err != nil {
			return nil, err
		}
		p := &Protection{found: g}
		// Last, because it makes directories: nothing that is known by now can fail.
		err = p.hold(r)
		var exists *guard.ExistsError
		if errors.As(err, &exists) && attempt < attempts {
			present = append(present, exists.Path)
			continue
		}
		if err == nil {
			err = g.pin()
		}
		if err != nil {
			p.Release()
			return nil, err
		}
		p.warnings = g.warnings
		return p, nil
	}
}

// collect finds out what stands at the places of a policy. Those in present are
// known not to be placeholders.
func collect(r *Request, present []string) (*gathering, error) {
	g, err := gather(r.Policy)
	if err != nil {
		return nil, err
	}
	g.present, g.dir = present, hostfacts.RealPath(r.Dir)
	if err := g.aboutRoot(); err != nil {
		return nil, err
	}
	g.hideState(r.State...)
	if g.tmp, err = g.tmpFor(r); err != nil {
		return nil, err
	}
	if g.tmp != nil {
		g.private = g.tmp.At
	}
	g.flat = !r.Mounts
	if err := g.protectAll(r.Policy, r.Scans); err != nil {
		return nil, err
	}
	if g.tmp != nil && filepath.IsAbs(r.Tmp) {
		if err := g.tmpFolder(r.Tmp, g.tmp.Source); err != nil {
			return nil, err
		}
	}
	if r.Policy.Network == sandbox.NetworkHost {
		g.resolverFile()
	}
	return g, spellings(r.Policy.Root, g.sorted())
}

// Rules returns the rules for the plan, in the order of their paths. Call it before
// [Protection.Started].
func (p *Protection) Rules() []plan.Rule { return p.found.sorted() }

// Tmp returns what stands at /tmp; nil is the host's own. Call it before
// [Protection.Started].
func (p *Protection) Tmp() *plan.Tmp { return p.found.tmp }

// Warnings returns what people should know and the command can do without.
func (p *Protection) Warnings() []string {
	if p == nil {
		return nil
	}
	return p.warnings
}

// Observed returns what the observer's judge needs. Call it before
// [Protection.Started].
func (p *Protection) Observed() observer.Names {
	if p == nil {
		return observer.Names{}
	}
	g := p.found
	f := observer.Names{Roots: g.roots, Partial: g.partly, NoMounts: g.flat}
	if g.private != "" {
		f.Free = []string{g.private}
	}
	for _, c := range slices.Concat(g.claims, g.late) {
		if !c.ReportOnly {
			f.Protected = append(f.Protected, c.Path)
		}
	}
	for name := range g.rules {
		f.Ruled = append(f.Ruled, name)
	}
	return f
}

// hold claims the names that were found missing and adds rules for the directories
// that now stand for some of them.
func (p *Protection) hold(r *Request) error {
	if r.Keeper == nil {
		return nil
	}
	g := p.found
	for _, o := range g.opened {
		s, err := gitpaths.Take(o.work, o.repo, g.outside)
		if err != nil {
			g.warn(err)
		}
		p.before = append(p.before, s)
		p.given = append(p.given, g.given(o.repo)...)
	}
	var fixed []guard.Claim
	if r.Mounts {
		fixed = g.fixed()
	}
	if len(g.claims) == 0 && len(g.late) == 0 && len(p.before) == 0 && len(fixed) == 0 {
		return nil
	}
	p.keeper, p.claims, p.late = r.Keeper, g.claims, g.late
	wants := make([]guard.Claim, len(g.claims))
	for i, c := range g.claims {
		wants[i] = c.Claim
		wants[i].Placeholder = c.Placeholder && r.Mounts // else nothing can stand over it
	}
	var err error
	if p.held, err = r.Keeper.Hold(slices.Concat(wants, fixed)); err != nil {
		return err
	}
	g.warnings = append(g.warnings, p.held.Weaker()...)
	for _, h := range p.held.Placeholders() {
		g.add(plan.Rule{
			Spot:  plan.Spot{Path: h.Path, Kind: plan.KindFolder, ID: launch.ID{Dev: h.Dev, Ino: h.Ino}},
			Level: sandbox.LevelRead, Why: "stands for a protected name", Auto: true,
		})
	}
	return nil
}

// Started gives up what is not needed any more when the command runs: only what
// [Protection.Finish] reads is left.
func (p *Protection) Started() {
	if p == nil {
		return
	}
	g := p.found
	p.found = nil
	if g != nil && len(p.before) > 0 {
		p.found = &gathering{base: g.base, private: g.private, rules: g.rules}
	}
}

// OnBroken has f called with the cause, in a goroutine of its own, when what a wall
// stands over was removed or replaced from outside.
func (p *Protection) OnBroken(f func(cause error)) {
	if p == nil || p.held == nil {
		return
	}
	p.held.OnBroken(f)
}

// given returns the places inside of a repository's git folders that an entry of
// the policy makes writable: what a command does there is what somebody asked for.
func (g *gathering) given(r *gitpaths.Repository) []string {
	var out []string
	for name, rule := range g.rules {
		inside := r != nil && (name != r.Dir && hostfacts.Below(name, r.Dir) || name != r.Common && hostfacts.Below(name, r.Common))
		if inside && rule.Level == sandbox.LevelWrite && !rule.Auto && rule.Why != whyGrant {
			out = append(out, name)
		}
	}
	return out
}

// Finish looks at everything once more, when the tree is dead, moves to quarantine
// what must not be there, and lets go.
func (p *Protection) Finish() ([]executor.Quarantined, error) {
	if p == nil {
		return nil, nil
	}
	var out []executor.Quarantined
	var err error
	if p.held != nil {
		var found []guard.Found
		found, err = p.held.Finish()
		for _, f := range found {
			if p.tried(f) {
				continue
			}
			out = append(out, executor.Quarantined{Path: f.Path, MovedTo: f.MovedTo, Why: f.Why, Grant: p.grant(f.Path)})
		}
	}
	for _, c := range p.late {
		err = errors.Join(err, p.move(c.Path, c.Why, &out))
	}
	for _, b := range p.before {
		paths, e := b.Check()
		err = errors.Join(err, e)
		for _, at := range paths {
			if _, ruled := p.found.rules[at.Path]; ruled || p.found.level(at.Path) != sandbox.LevelWrite {
				continue // the command could not do it, or was allowed to by name
			}
			if slices.ContainsFunc(p.given, func(given string) bool { return hostfacts.Below(at.Path, given) }) {
				continue
			}
			err = errors.Join(err, p.move(at.Path, at.Why, &out))
		}
	}
	p.Release()
	return out, err
}

// Denials returns the writes that were noticed by what they left. They are known after
// Finish.
func (p *Protection) Denials() []sandbox.Denial {
	if p == nil {
		return nil
	}
	return p.denials
}

// move moves what stands at a path to quarantine.
func (p *Protection) move(name, why string, out *[]executor.Quarantined) error {
	f, err := p.keeper.Quarantine(name, why)
	if errors.Is(err, syscall.ELOOP) {
		// No link was on the way when the command began. If something can be had by
		// the one that is there now, it goes.
		links := hostfacts.Links(filepath.Dir(name))
		if _, e := os.Stat(name); e != nil || len(links) == 0 {
			return nil //nolint:nilerr // nothing stands there
		}
		name = links[0].Path
		f, err = p.keeper.Quarantine(name, why)
	}
	if err == nil && f.Kind != guard.KindGone {
		*out = append(*out, executor.Quarantined{Path: name, MovedTo: f.MovedTo, Why: why})
	}
	return err
}

// tried turns what was only noticed into a denial, and reports whether it was. That
// the command did it is likely and not known.
func (p *Protection) tried(f guard.Found) bool {
	for _, c := range p.claims {
		if c.Path == f.Path && c.tries != "" {
			p.denials = append(p.denials, sandbox.Denial{
				Access: sandbox.Access{Op: sandbox.Write, Path: c.tries}, Errno: "EBUSY", Source: sandbox.Guessed, Grant: c.grant, Time: f.When,
			})
			return true
		}
	}
	return false
}

func (p *Protection) grant(name string) string {
	for _, c := range p.claims {
		if c.Path == name {
			return c.grant
		}
	}
	return ""
}

// Release lets the claims go. It may be called twice.
func (p *Protection) Release() {
	if p != nil && p.held != nil {
		p.held.Release()
		p.held = nil
	}
}

// maxFixed bounds how many folders are watched for what is replaced in them; each
// takes a descriptor.
const maxFixed = 128

// fixed lists what walls will stand over, and what must not be replaced for them to
// stay there. Our own state is ours to look after, and repositories below the top of
// a workspace may be made anew by other commands, as builds do.
func (g *gathering) fixed() []guard.Claim {
	var wants []guard.Claim
	folders := map[string]bool{}
	for _, r := range g.sorted() {
		if slices.Contains(g.loose, r.Path) {
			continue
		}
		wall := r.Level == sandbox.LevelDeny && !r.Auto || r.Level == sandbox.LevelRead && g.level(filepath.Dir(r.Path)) == sandbox.LevelWrite
		if !wall || r.Kind == plan.KindMissing || g.private != "" && hostfacts.Below(r.Path, g.private) && g.level(filepath.Dir(r.Path)) != sandbox.LevelWrite {
			continue
		}
		if dir := filepath.Dir(r.Path); !folders[dir] {
			if len(folders) == maxFixed {
				g.warnings = append(g.warnings, fmt.Sprintf("%s and what comes after it is not watched: a program outside that replaces it takes the wall over it away", r.Path))
				break
			}
			folders[dir] = true
		}
		wants = append(wants, guard.Claim{Path: r.Path, Dev: r.ID.Dev, Ino: r.ID.Ino, Why: r.Why})
	}
	return wants
}
