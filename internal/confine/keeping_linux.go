// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/repo"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A keeping is what is kept around one command: names that must not come into
// being, and the state of repositories whose folders it may write to. The zero
// keeping keeps nothing.
type keeping struct {
	keeper *guard.Keeper
	held   *guard.Hold
	claims []claim
	before []before
}

// before is a repository as it was before the command ran.
type before struct {
	repo *repo.Repository
	was  repo.Snapshot
}

// hold claims the names that a gathering found missing and adds rules for the
// folders that now stand for some of them.
func (k *keeping) hold(h *Host, g *gathering) error {
	for _, r := range g.opened {
		k.before = append(k.before, before{repo: r, was: r.Snapshot()})
	}
	if len(g.claims) == 0 && len(k.before) == 0 {
		return nil
	}
	keeper, err := h.guard()
	if err != nil {
		return err
	}
	k.keeper, k.claims = keeper, g.claims
	wants := make([]guard.Want, len(g.claims))
	for i, c := range g.claims {
		wants[i] = c.Want
	}
	if k.held, err = keeper.Hold(wants); err != nil {
		return err
	}
	for _, p := range k.held.Placeholders() {
		g.add(plan.Rule{
			Spot:  plan.Spot{Path: p.Path, Kind: plan.KindFolder, ID: launch.ID{Dev: p.Dev, Ino: p.Ino}},
			Level: sandbox.LevelRead, Why: "stands for a protected name",
		})
	}
	return nil
}

// finish looks at everything once more, when the tree is dead, and lets go.
func (k *keeping) finish() ([]executor.Quarantined, error) {
	var out []executor.Quarantined
	var err error
	if k.held != nil {
		var found []guard.Found
		found, err = k.held.Finish()
		for _, f := range found {
			out = append(out, executor.Quarantined{Path: f.Path, MovedTo: f.MovedTo, Why: f.Why, Grant: k.grant(f.Path)})
		}
	}
	for _, b := range k.before {
		for _, p := range b.repo.Check(b.was) {
			f, e := k.keeper.Quarantine(p.Path, p.Why)
			err = errors.Join(err, e)
			out = append(out, executor.Quarantined{Path: p.Path, MovedTo: f.MovedTo, Why: p.Why})
		}
	}
	k.release()
	return out, err
}

func (k *keeping) grant(name string) string {
	for _, c := range k.claims {
		if c.Path == name {
			return c.grant
		}
	}
	return ""
}

// release lets the claims go. It may be called twice.
func (k *keeping) release() {
	if k.held != nil {
		k.held.Release()
		k.held = nil
	}
}

// guard returns what keeps names for this Host, made when it is first needed.
func (h *Host) guard() (*guard.Keeper, error) {
	state, _, err := h.private()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keeper == nil {
		h.keeper = &guard.Keeper{State: state}
	}
	return h.keeper, nil
}

// scan looks for nested repositories below a root. What it learned is kept for
// the next time, also in the state folder; where there is none, it starts anew.
func (h *Host) scan(root string) repo.Found {
	state, _, err := h.private()
	if err != nil {
		return repo.Scan(root, nil, repo.Limit{})
	}
	h.mu.Lock()
	cache := h.scans[root]
	h.mu.Unlock()
	if cache == nil {
		sum := sha256.Sum256([]byte(root))
		dir := filepath.Join(state, "scans")
		_ = os.Mkdir(dir, 0o700) //nolint:forbidigo // without it nothing is kept, which Save reports
		cache = repo.LoadCache(filepath.Join(dir, hex.EncodeToString(sum[:16])))
		h.mu.Lock()
		if h.scans == nil {
			h.scans = make(map[string]*repo.Cache)
		}
		h.scans[root] = cache
		h.mu.Unlock()
	}
	found := repo.Scan(root, cache, repo.Limit{})
	_ = cache.Save() // what is not kept is searched again
	return found
}
