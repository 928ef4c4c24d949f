// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Store prepares private layers and remembers the directories that cannot have
// an overlay. The zero Store is ready to use, from several goroutines at once.
type Store struct {
	mu      sync.Mutex
	refused map[string]string // by directory: why the kernel makes no overlay over it
}

// A Request says which caches a run needs and what its sandbox looks like so far.
type Request struct {
	Plan     *plan.Request // rules and environment; it is not changed
	Args     []string      // what is run
	Dir      string        // working directory, symbolic links resolved
	State    string        // state directory
	Policy   *sandbox.Resolved
	Allow    []string // what is allowed beyond the defaults
	Disabled bool     // the run uses no private layers
	Overlays bool     // the sandbox level has overlays
	Dry      bool     // nothing is made that lasts outside of the state directory
	// Like are layers that fit, whose overlays are mounted and stay so. They serve this run as well:
	// the run must find these overlays, and mount none. Nil is for layers of its own.
	Like *Layers
}

// Fits reports whether a run may have layers: those of its class in its workspace.
func (r *Request) Fits(l *Layers) bool {
	workspace := workspaceOf(r.Plan.Rules, r.Dir)
	return l != nil && l.slot.workspace == workspace && l.slot.class == classOf(r, workspace)
}

// Layers is what a run gets: the rules, overlays and environment that replace
// those of its plan request. They hold a slot until Release. A nil Layers has none.
type Layers struct {
	Rules    []plan.Rule // sorted by path
	Overlays []plan.Overlay
	Env      []string

	slot     *slot
	released sync.Once
}

// Share returns the same layers for something else that needs them, such as their mounted overlays, which
// stay mounted from now on. It is nil where there are no overlays.
func (l *Layers) Share() *Layers {
	if l == nil || len(l.Overlays) == 0 {
		return nil
	}
	sharing.Lock()
	defer sharing.Unlock()
	l.slot.refs++
	l.slot.mounted = true
	return &Layers{Rules: l.Rules, Overlays: l.Overlays, Env: l.Env, slot: l.slot}
}

// more returns the slot of layers, for another run that they fit.
func (l *Layers) more() *slot {
	sharing.Lock()
	defer sharing.Unlock()
	l.slot.refs++
	return l.slot
}

// Borrowed reports whether l has the slot of other layers.
func (l *Layers) Borrowed(of *Layers) bool { return l != nil && of != nil && l.slot == of.slot }

// Hold returns the open directory whose lock holds the layers for as long as a
// process has it open. It is nil if the run has no overlays.
func (l *Layers) Hold() *os.File {
	if l == nil {
		return nil
	}
	return l.slot.lock
}

// Release gives the layers back. Nothing may use them any more. It may be called
// twice.
func (l *Layers) Release() {
	if l != nil {
		l.released.Do(l.slot.release)
	}
}

// Prepare gives a run private layers for what the toolchains of its workspace, and
// those that it has a grant for, keep between builds: an overlay over the host's
// directory or, where the kernel or the policy allows none, a private directory that
// a variable of the environment names. A host's cache never stays writable because a
// larger writable root contains it. Prepare returns nil if the run needs no layers.
func (s *Store) Prepare(r Request) (*Layers, error) {
	var granted []Toolchain
	for _, name := range r.Policy.Named {
		if t, ok := Granted(name); ok {
			granted = append(granted, t)
		}
	}
	if r.Disabled {
		if len(granted) == 0 {
			return nil, nil
		}
		return nil, &sandbox.UnsupportedError{
			Need: "private layers over toolchain caches, for a grant that begins with " + GrantPrefix,
			Have: "the command disables them", Hint: "leave one of the two out",
		}
	}
	workspace := workspaceOf(r.Plan.Rules, r.Dir)
	tools := Join(Detect(workspace, r.Dir, r.Args), granted)
	if len(tools) == 0 {
		return nil, nil
	}
	var slot *slot
	var err error
	if r.Fits(r.Like) {
		slot = r.Like.more()
	} else {
		slot, err = acquire(r.State, workspace, classOf(&r, workspace))
	}
	if err != nil {
		return nil, &executor.RootError{
			Path: r.State, Why: "cannot contain the private layers of toolchain caches: " + err.Error(),
			Fix: "set XDG_STATE_HOME to a directory with free space, or turn the layers off",
		}
	}
	p := preparation{store: s, pr: *r.Plan, slot: slot, overlays: r.Overlays, env: r.Plan.Env,
		dry: r.Dry}
	p.pr.Rules, p.pr.Overlays = slices.Clone(p.pr.Rules), slices.Clone(p.pr.Overlays)
	for _, t := range tools {
		for i := range t.Caches {
			if err == nil {
				err = p.add(&t.Caches[i])
			}
		}
	}
	if err == nil {
		err = p.pin()
	}
	if err != nil {
		slot.release()
		return nil, err
	}
	return &Layers{Rules: p.pr.Rules, Overlays: p.pr.Overlays, Env: p.pr.Env, slot: slot}, nil
}

// workspaceOf returns the nearest writable root around dir, or dir itself. Rules are
// sorted by path, so the last one is the nearest.
func workspaceOf(rules []plan.Rule, dir string) string {
	workspace := dir
	for _, r := range rules {
		if r.Level == sandbox.LevelWrite && r.Kind == plan.KindDirectory && !r.Pin &&
			hostfacts.Below(dir, r.Path) {
			workspace = r.Path
		}
	}
	return workspace
}

// Learn reports whether a launch failed because the kernel did not make an overlay,
// and whether a new plan can avoid that: the directory gets no overlay from now on.
// No program was executed then.
func (s *Store) Learn(err error) bool {
	var step *launch.StepError
	if !errors.As(err, &step) || step.Step.Op != launch.OpOverlay || step.Call == "compare" ||
		step.Errno == syscall.ELOOP {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused[step.Step.Path] != "" {
		return false
	}
	if s.refused == nil {
		s.refused = make(map[string]string)
	}
	s.refused[step.Step.Path] = fmt.Sprintf("the kernel makes no overlay over it (%s: %v)",
		step.Call, step.Errno)
	return true
}

// whyRefused returns why a directory cannot have an overlay, or "".
func (s *Store) whyRefused(dir string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[dir]
}

// A preparation is one call of Prepare.
type preparation struct {
	store    *Store
	pr       plan.Request // with what was added so far
	env      []string     // as the caller gave it: where the host's directories are
	slot     *slot
	overlays bool
	dry      bool
}

// add decides about one cache.
func (p *preparation) add(c *Cache) error {
	dir := c.Dir(p.env)
	if dir == "" {
		return p.redirect(c, "HOME is not set")
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil && p.make(c, dir) {
		real, err = filepath.EvalSymlinks(dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return p.redirect(c, "the host has no "+dir)
	case err != nil:
		return p.redirect(c, dir+" cannot be read: "+hostfacts.Reason(err))
	}
	if err := p.fixed(dir); err != nil {
		return err
	}
	spot, err := hostfacts.Look(real)
	if err != nil || spot.Kind != plan.KindDirectory {
		return p.redirect(c, dir+" is not a directory")
	}
	if i := slices.IndexFunc(p.pr.Rules, func(r plan.Rule) bool { return r.Path == real && !r.Pin }); i >= 0 {
		// The policy decides. Where the tools cannot live with that, they get a
		// private directory.
		if level := p.pr.Rules[i].Level; level == sandbox.LevelWrite || level == sandbox.LevelRead &&
			c.ReadOnlyWorks {
			return nil
		}
		return p.redirect(c, "the policy has a rule for "+real)
	}
	if slices.ContainsFunc(p.pr.Overlays, func(o plan.Overlay) bool { return o.Path == real }) {
		return nil // two caches share the directory
	}
	why := p.pr.Fits(real)
	if !p.overlays {
		why = "this level has no overlays"
	}
	if why == "" {
		why = p.store.whyRefused(real)
	}
	if why == "" && p.slot.lock == nil {
		why = "too many commands run in this workspace"
	}
	if why == "" {
		return p.overlay(c, spot)
	}
	return p.protect(c, spot, why)
}

// make makes the directory of a cache, empty, where an overlay over it has the place that tools expect.
// It reports false where it has not: what cannot be made is redirected. The parents may be the user's
// home, so nothing is made for a run that may not write, nor where the run could make it.
func (p *preparation) make(c *Cache, dir string) bool {
	real := hostfacts.Deepest(dir)
	return c.Made && !p.dry && p.overlays && p.slot.lock != nil && p.slot.class.writes &&
		p.pr.LevelAt(real) == sandbox.LevelRead && p.pr.Fits(real) == "" && p.store.whyRefused(real) == "" &&
		hostfacts.MakeDirectories(real) == nil
}

// fixed refuses the directory of a cache if a command can redirect it.
func (p *preparation) fixed(dir string) error {
	for _, link := range hostfacts.Links(dir) {
		for _, r := range p.pr.Rules {
			if r.Level != sandbox.LevelWrite || link.Path == r.Path || !hostfacts.Below(link.Path, r.Path) {
				continue
			}
			return &sandbox.UnsupportedError{
				Need: "a fixed place for the cache " + dir,
				Have: fmt.Sprintf("it leads through the symbolic link %s, which lies in a writable root and can be changed by the command", link.Path),
				Hint: "name the directory itself in the tool's own variable, or turn the layers off",
			}
		}
	}
	return nil
}

// overlay adds an overlay over a directory of the host.
func (p *preparation) overlay(c *Cache, spot plan.Spot) error {
	why := "; what is written stays with the workspace"
	if !p.slot.class.writes {
		why = "; what is written is removed at the end, because the run may not write"
	}
	return p.over(c, plan.Overlay{Spot: spot, Why: "toolchain cache " + c.Name + why})
}

// over adds an overlay with the layers of a cache.
func (p *preparation) over(c *Cache, o plan.Overlay) error {
	o.Lower = p.slot.lower(c.Name)
	upper, work, err := p.slot.layers(c.Name)
	if err == nil {
		o.Upper, err = hostfacts.Look(upper)
	}
	if err == nil {
		o.Work, err = hostfacts.Look(work)
	}
	if err != nil {
		return fmt.Errorf("the private layer of the cache %s: %w", c.Name, err)
	}
	p.pr.Overlays = append(p.pr.Overlays, o)
	return nil
}

// protect makes a host's cache that can have no overlay read-only. Tools that need
// to write get a private directory.
func (p *preparation) protect(c *Cache, spot plan.Spot, why string) error {
	level := p.pr.LevelAt(spot.Path)
	if level == sandbox.LevelWrite {
		p.rule(plan.Rule{Spot: spot, Level: sandbox.LevelRead, Auto: true, Why: "the host's cache " + c.Name})
		level = sandbox.LevelRead
	}
	if level == sandbox.LevelRead && c.ReadOnlyWorks && !p.pr.Hides(spot.Path) && !isEmpty(spot.Path) {
		return nil
	}
	return p.redirect(c, why)
}

// isEmpty reports whether a directory has no entries, as one that [preparation.make] has made.
func isEmpty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// redirect sends the tools to a private directory, if a variable can.
func (p *preparation) redirect(c *Cache, why string) error {
	if c.Redirect.Name == "" {
		return nil
	}
	dir, err := p.slot.private(c.Name)
	if err != nil {
		return fmt.Errorf("the private directory for the cache %s: %w", c.Name, err)
	}
	env, ok := c.RedirectTo(p.pr.Env, dir)
	if !ok {
		return nil
	}
	spot, err := hostfacts.Look(dir)
	if err != nil {
		return fmt.Errorf("the private directory for the cache %s: %w", c.Name, err)
	}
	p.pr.Env = env
	why = "toolchain cache " + c.Name + ", private: " + why
	p.rule(plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Why: why, Own: true})
	if p.overlays && p.slot.lock != nil && p.store.whyRefused(dir) == "" && len(p.slot.lower(c.Name)) > 0 {
		return p.over(c, plan.Overlay{Spot: spot, Why: why, Private: true})
	}
	return nil
}

// rule adds a rule in its place. It replaces a pin, which has no meaning of its own.
func (p *preparation) rule(r plan.Rule) {
	at, found := slices.BinarySearchFunc(p.pr.Rules, r.Path,
		func(o plan.Rule, name string) int { return strings.Compare(o.Path, name) })
	if found && p.pr.Rules[at].Pin {
		p.pr.Rules[at] = r
		return
	}
	p.pr.Rules = slices.Insert(p.pr.Rules, at, r)
}

// pin fixes the directories above overlays in a writable root: a command that moves
// one of them would move the host's cache to where the next run can write it.
func (p *preparation) pin() error {
	for _, o := range p.pr.Overlays {
		for at := filepath.Dir(o.Path); at != "/" &&
			p.pr.LevelAt(at) == sandbox.LevelWrite; at = filepath.Dir(at) {
			if slices.ContainsFunc(p.pr.Rules, func(r plan.Rule) bool { return r.Path == at }) {
				break
			}
			spot, err := hostfacts.Look(at)
			if err != nil {
				return &executor.RootError{Path: at, Why: "cannot be read: " + hostfacts.Reason(err)}
			}
			p.rule(plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Pin: true,
				Why: "fixed: it contains a cache of the host"})
		}
	}
	return nil
}
