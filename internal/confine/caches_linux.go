// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A cacheUse is what one start has of the caches of toolchains. Nil is nothing.
type cacheUse struct {
	overlays  bool // they can be had
	host      *Host
	pr        *plan.Request
	workspace string
	state     string
	slot      *caches.Slot
}

// caches adds what the toolchains of the workspace keep between builds: an overlay
// over the host's folder or, where there can be none, a private folder that a
// variable leads to. The host's own is never left writable by a root that is
// wider than it.
//
// Overlays can only be had at the native level.
func (h *Host) caches(r *executor.Spec, pr *plan.Request, keep *keeping, overlays bool) (*cacheUse, error) {
	asked := grantedCaches(r.Policy.Named())
	if r.NoCaches {
		return nil, noCaches(asked)
	}
	dir := hostfacts.RealPath(r.Dir)
	u := &cacheUse{overlays: overlays, host: h, pr: pr, workspace: workspaceOf(pr, dir)}
	tools := caches.Join(caches.Detect(u.workspace, dir), asked)
	if len(tools) == 0 {
		return nil, nil
	}
	if err := u.open(); err != nil {
		return nil, fmt.Errorf("the private layer of toolchain caches cannot be made: %w; set XDG_STATE_HOME to a folder with room, or leave caches alone with --no-caches", err)
	}
	if keep == nil {
		defer u.slot.Release() // only a look
	} else {
		keep.slot = u.slot
	}
	env := pr.Env // where the host's folders are does not change by what is set below
	for _, t := range tools {
		for i := range t.Caches {
			if err := u.add(&t.Caches[i], env); err != nil {
				return nil, err
			}
		}
	}
	return u, u.pinCaches()
}

// workspaceOf is the nearest writable root around dir, or dir itself.
func workspaceOf(pr *plan.Request, dir string) string {
	best := ""
	for _, r := range pr.Rules {
		if r.Level == sandbox.LevelWrite && r.Kind == plan.KindFolder && !r.Pin && hostfacts.Below(dir, r.Path) && len(r.Path) > len(best) {
			best = r.Path
		}
	}
	if best == "" {
		return dir
	}
	return best
}

// open takes a slot.
func (u *cacheUse) open() error {
	state, err := u.host.stateFolder()
	if err != nil {
		return err
	}
	u.state = state
	u.slot, err = caches.Acquire(state, u.workspace)
	return err
}

// add decides about one cache.
func (u *cacheUse) add(c *caches.Cache, env []string) error {
	folder := c.Folder(env)
	if folder == "" {
		return u.point(c, "there is no HOME to look in")
	}
	real, err := filepath.EvalSymlinks(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		// Nothing is made in the user's home, so nothing can be mounted there.
		return u.point(c, "the host has no "+folder)
	case err != nil:
		return u.point(c, folder+" cannot be looked at: "+hostfacts.Reason(err))
	}
	if err := u.crossed(folder, real); err != nil {
		return err
	}
	spot, err := hostfacts.Look(real)
	if err != nil || spot.Kind != plan.KindFolder {
		return u.point(c, folder+" is no folder")
	}
	if slices.ContainsFunc(u.pr.Rules, func(r plan.Rule) bool { return r.Path == real && !r.Pin }) {
		return u.ruled(c, real)
	}
	if slices.ContainsFunc(u.pr.Overlays, func(o plan.Overlay) bool { return o.Path == real }) {
		return nil // two caches in one folder
	}
	why := u.pr.Fits(real)
	if !u.overlays {
		why = "this level has no overlays"
	}
	if why == "" {
		why = u.host.flatReason(real)
	}
	if why == "" {
		if why, err = u.overlay(c, spot); err != nil {
			return err
		}
	}
	if why == "" {
		return nil
	}
	return u.without(c, spot, why)
}

// crossed refuses a cache that a command could have redirected.
func (u *cacheUse) crossed(folder, real string) error {
	g := &gathering{}
	for _, r := range u.pr.Rules {
		if r.Level == sandbox.LevelWrite {
			g.roots = append(g.roots, r.Path)
		}
	}
	link, ok := g.crosses(folder, real)
	if !ok {
		return nil
	}
	return &sandbox.UnsupportedError{
		Need: "a fixed place for the cache " + folder,
		Have: fmt.Sprintf("it leads through the symbolic link %s, which lies in a writable root and can be changed by the command", link),
		Hint: "name the folder itself in the tool's own variable, or leave caches alone with --no-caches",
	}
}

// ruled is for a cache that the policy has a rule of its own for: what it says is
// what somebody wanted. Where it may not be written, the tools get another one.
func (u *cacheUse) ruled(c *caches.Cache, real string) error {
	i := slices.IndexFunc(u.pr.Rules, func(r plan.Rule) bool { return r.Path == real })
	switch level := u.pr.Rules[i].Level; {
	case level == sandbox.LevelWrite, level == sandbox.LevelRead && c.ReadOnlyIsFine:
		return nil
	}
	return u.point(c, "the policy has a rule for "+real)
}

// overlay adds an overlay, or says why there is none.
func (u *cacheUse) overlay(c *caches.Cache, spot plan.Spot) (why string, err error) {
	layers, ok, err := u.slot.Layers(c.Name)
	if err != nil {
		return "", err
	}
	if !ok {
		return "too many commands run in this workspace", nil
	}
	o := plan.Overlay{Spot: spot, Why: "toolchain cache " + c.Name + "; what is written stays with the workspace"}
	if o.Upper, err = hostfacts.Look(layers.Upper); err == nil {
		o.Work, err = hostfacts.Look(layers.Work)
	}
	if err != nil {
		return "", fmt.Errorf("the private layer of the cache %s: %w", c.Name, err)
	}
	u.pr.Overlays = append(u.pr.Overlays, o)
	return "", nil
}

// without is for a cache of the host's that no overlay can show. It must not stay
// writable, and where the tools cannot live with that they get another one.
func (u *cacheUse) without(c *caches.Cache, spot plan.Spot, why string) error {
	level := u.pr.LevelAt(spot.Path)
	if level == sandbox.LevelWrite {
		addRule(u.pr, plan.Rule{Spot: spot, Level: sandbox.LevelRead, Auto: true, Why: "the host's cache " + c.Name})
		level = sandbox.LevelRead
	}
	if level == sandbox.LevelRead && c.ReadOnlyIsFine && !u.pr.Hides(spot.Path) {
		return nil
	}
	return u.point(c, why)
}

// point sends the tools to a private folder.
func (u *cacheUse) point(c *caches.Cache, why string) error {
	if c.Points.Name == "" {
		return nil
	}
	dir, err := u.slot.Plain(c.Name)
	if err != nil {
		return fmt.Errorf("the private folder for the cache %s: %w", c.Name, err)
	}
	env, ok := c.Point(u.pr.Env, dir)
	if !ok {
		return nil
	}
	spot, err := hostfacts.Look(dir)
	if err != nil {
		return fmt.Errorf("the private folder for the cache %s: %w", c.Name, err)
	}
	u.pr.Env = env
	addRule(u.pr, plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Why: "toolchain cache " + c.Name + ", private: " + why})
	return nil
}

// hold has the tree keep the slot for as long as it lives, also when this process
// is gone before it.
func (u *cacheUse) hold(p *plan.Plan) {
	if u != nil && p != nil {
		p.Script.Hold = u.slot.Lock()
	}
}

// flatReason is why no overlay can show a folder, as an earlier start has found.
func (h *Host) flatReason(folder string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.flat[folder]
}

// withoutOverlay reports whether a start failed because the kernel would not make
// an overlay, and whether trying again can end otherwise. Nothing has run then.
// The folder gets none from now on.
func (h *Host) withoutOverlay(err error) bool {
	var step *launch.StepError
	if !errors.As(err, &step) || step.Step.Op != launch.OpOverlay || step.Call == "compare" || step.Errno == syscall.ELOOP {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.flat == nil {
		h.flat = make(map[string]string)
	}
	if h.flat[step.Step.Path] != "" {
		return false
	}
	h.flat[step.Step.Path] = fmt.Sprintf("the kernel makes no overlay over it (%s: %v)", step.Call, step.Errno)
	return true
}

// stateFolder is the folder that outlives runs: that of the private /tmp, or the
// first that can be had.
func (h *Host) stateFolder() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != "" {
		return h.state, nil
	}
	state, err := state.Folder()
	if err == nil {
		h.state = state
	}
	return state, err
}

// addRule adds a rule to a request, in its place. It may take that of a pin, which
// says nothing of its own.
func addRule(pr *plan.Request, r plan.Rule) {
	at, found := slices.BinarySearchFunc(pr.Rules, r.Path, func(o plan.Rule, name string) int { return strings.Compare(o.Path, name) })
	if found && pr.Rules[at].Pin {
		pr.Rules[at] = r
		return
	}
	pr.Rules = slices.Insert(pr.Rules, at, r)
}

// pinCaches keeps the folders above overlays in a writable root where they are:
// with one of them the host's cache would move to where the next run finds it
// writable.
func (u *cacheUse) pinCaches() error {
	for _, o := range u.pr.Overlays {
		for at := filepath.Dir(o.Path); at != "/" && u.pr.LevelAt(at) == sandbox.LevelWrite; at = filepath.Dir(at) {
			if slices.ContainsFunc(u.pr.Rules, func(r plan.Rule) bool { return r.Path == at }) {
				break
			}
			spot, err := hostfacts.Look(at)
			if err != nil {
				return &executor.RootError{Path: at, Why: "cannot be looked at: " + hostfacts.Reason(err)}
			}
			addRule(u.pr, plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Pin: true, Why: "stays where it is: a cache of the host is in it"})
		}
	}
	return nil
}
