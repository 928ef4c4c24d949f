// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/gitpaths"
	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A keeping is what is kept around one command: names that must not come into
// being, and the state of repositories whose folders it may write to. The zero
// keeping keeps nothing.
type keeping struct {
	keeper   *guard.Keeper
	held     *guard.Hold
	claims   []claim
	warnings []string
	late     []claim // names that can only be looked at when everything is over
	before   []*gitpaths.Snapshot
	denials  []sandbox.Denial // written by finish
	g        *gathering
	caches   *caches.Layers // private layers over toolchain caches; nil without
	layers   []string       // places that overlays stand at
	given    []string       // places in git folders that the policy itself makes writable
	writable []string       // the folders that a limit on disk is about
}

// hold claims the names that a gathering found missing and adds rules for the
// folders that now stand for some of them.
func (k *keeping) hold(h *Host, g *gathering, mounts bool) error {
	k.g = g
	k.before = nil // of an earlier try
	k.given = nil
	for _, o := range g.opened {
		s, err := gitpaths.Take(o.work, o.repo, g.outside)
		if err != nil {
			g.warn(err)
		}
		k.before = append(k.before, s)
		k.given = append(k.given, g.given(o.repo)...)
	}
	var fixed []guard.Want
	if mounts {
		fixed = g.fixed()
	}
	if len(g.claims) == 0 && len(g.late) == 0 && len(k.before) == 0 && len(fixed) == 0 {
		return nil
	}
	keeper, err := h.guard()
	if err != nil {
		return err
	}
	k.keeper, k.claims, k.late = keeper, g.claims, g.late
	wants := make([]guard.Want, len(g.claims))
	for i, c := range g.claims {
		wants[i] = c.Want
		wants[i].Placeholder = c.Placeholder && mounts // else nothing can stand over it
	}
	if k.held, err = keeper.Hold(slices.Concat(wants, fixed)); err != nil {
		return err
	}
	g.warnings = append(g.warnings, k.held.Weaker()...)
	for _, p := range k.held.Placeholders() {
		g.add(plan.Rule{
			Spot:  plan.Spot{Path: p.Path, Kind: plan.KindFolder, ID: launch.ID{Dev: p.Dev, Ino: p.Ino}},
			Level: sandbox.LevelRead, Why: "stands for a protected name", Auto: true,
		})
	}
	return nil
}

// settle gives up what nobody asks for any more when the command runs: of the
// gathering only what [keeping.finish] reads is left.
func (k *keeping) settle() {
	g := k.g
	k.g = nil
	if g != nil && len(k.before) > 0 {
		k.g = &gathering{base: g.base, private: g.private, rules: g.rules}
	}
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

// finish looks at everything once more, when the tree is dead, and lets go.
func (k *keeping) finish() ([]executor.Quarantined, error) {
	var out []executor.Quarantined
	var err error
	if k.held != nil {
		var found []guard.Found
		found, err = k.held.Finish()
		for _, f := range found {
			if k.tried(f) {
				continue
			}
			out = append(out, executor.Quarantined{Path: f.Path, MovedTo: f.MovedTo, Why: f.Why, Grant: k.grant(f.Path)})
		}
	}
	for _, c := range k.late {
		err = errors.Join(err, k.move(c.Path, c.Why, &out))
	}
	for _, b := range k.before {
		paths, e := b.Check()
		err = errors.Join(err, e)
		for _, p := range paths {
			if _, ruled := k.g.rules[p.Path]; ruled || k.g.level(p.Path) != sandbox.LevelWrite {
				continue // the command could not do it, or was allowed to by name
			}
			if slices.ContainsFunc(k.given, func(at string) bool { return hostfacts.Below(p.Path, at) }) {
				continue
			}
			err = errors.Join(err, k.move(p.Path, p.Why, &out))
		}
	}
	k.release()
	return out, err
}

// move moves what stands at a path to quarantine.
func (k *keeping) move(name, why string, out *[]executor.Quarantined) error {
	f, err := k.keeper.Quarantine(name, why)
	if errors.Is(err, syscall.ELOOP) {
		// No link was on the way when the command began. If something can be had by
		// the one that is there now, it goes.
		links := hostfacts.Links(filepath.Dir(name))
		if _, e := os.Stat(name); e != nil || len(links) == 0 {
			return nil //nolint:nilerr // nothing stands there
		}
		name = links[0].Path
		f, err = k.keeper.Quarantine(name, why)
	}
	if err == nil && f.Kind != guard.KindGone {
		*out = append(*out, executor.Quarantined{Path: name, MovedTo: f.MovedTo, Why: why})
	}
	return err
}

// tried turns what was only noticed into a denial, and reports whether it was. That
// the command did it is likely and not known.
func (k *keeping) tried(f guard.Found) bool {
	for _, c := range k.claims {
		if c.Path == f.Path && c.tries != "" {
			k.denials = append(k.denials, sandbox.Denial{
				Access: sandbox.Access{Op: sandbox.Write, Path: c.tries}, Errno: "EBUSY", Source: sandbox.Guessed, Grant: c.grant, Time: f.When,
			})
			return true
		}
	}
	return false
}

func (k *keeping) grant(name string) string {
	for _, c := range k.claims {
		if c.Path == name {
			return c.grant
		}
	}
	return ""
}

// release lets the claims and the slot go. It may be called twice.
func (k *keeping) release() {
	if k.held != nil {
		k.held.Release()
		k.held = nil
	}
	k.caches.Release()
}

// guard returns what keeps names for this Host, made when it is first needed.
func (h *Host) guard() (*guard.Keeper, error) {
	state, _, err := h.private()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	if h.keeper == nil {
		h.keeper = &guard.Keeper{State: state}
	}
	return h.keeper, nil
}

// dropPlaceholders removes the placeholders that no run of this Host needs.
func (h *Host) dropPlaceholders() error {
	h.mu.Lock()
	keeper := h.keeper
	h.mu.Unlock()
	if keeper == nil {
		return nil
	}
	return keeper.DropUnused()
}

// memory returns what is remembered of the repositories below a folder, and the
// function that keeps it for the next time. Where there is no state folder,
// everything is looked at anew. One gathering at a time uses it.
func (h *Host) memory(root string) (cache *gitpaths.Cache, keep func()) {
	state, _, err := h.private()
	if err != nil {
		return nil, func() {}
	}
	sum := sha256.Sum256([]byte(root))
	dir := filepath.Join(state, "scans")
	name := filepath.Join(dir, hex.EncodeToString(sum[:16]))
	h.scanning.Lock()
	cache = h.scans[root]
	if cache == nil {
		cache = gitpaths.LoadCache(name)
		if h.scans == nil {
			h.scans = make(map[string]*gitpaths.Cache)
		}
		h.scans[root] = cache
	}
	return cache, func() {
		if cache.Save(name) != nil {
			_ = os.Mkdir(dir, 0o700) //nolint:forbidigo // the state folder is ours
			_ = cache.Save(name)     // what is not kept is searched again
		}
		h.scanning.Unlock()
	}
}

// maxFixed bounds how many folders are watched for what is replaced in them; each
// takes a descriptor.
const maxFixed = 128

// fixed lists what walls will stand over, and what must not be replaced for them to
// stay there. Our own state is ours to look after, and repositories below the top of
// a workspace may be made anew by other commands, as builds do.
func (g *gathering) fixed() []guard.Want {
	var wants []guard.Want
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
		wants = append(wants, guard.Want{Path: r.Path, Dev: r.ID.Dev, Ino: r.ID.Ino, Why: r.Why})
	}
	return wants
}
