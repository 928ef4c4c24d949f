// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package protect

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// whyCredentials begins the reason of a rule for a store of secrets; its grant follows.
const whyCredentials = "a store of secrets; opened by --grant "

// A finderOfSecrets returns what a search by content finds below a home directory, see [credentials.Known].
type finderOfSecrets func(home string) []grants.Store

// searchAnew remembers nothing.
func searchAnew(home string) []grants.Store {
	found, _ := new(grants.KnownSecrets).Search(home)
	return found
}

// hideCredentials denies the stores of secrets that exist in home directories, except for those that a grant
// opens or that an entry of the policy is about. An entry for something in a store opens
// that and nothing else. Dir is the working directory.
func (s *ruleset) hideCredentials(policy *sandbox.Resolved, homes []string, dir string,
	byContent finderOfSecrets) error {
	private := make(chan []grants.Store, 1)
	go func() { private <- s.private(policy, homes, dir, byContent) }() // both take as long
	search := grants.SecretSearch{Homes: homes, Granted: policy.Named, Env: os.Getenv, Dir: dir}
	stores := search.Find()
	stores = append(stores, <-private...)
	for _, store := range stores {
		if err := s.hideStore(policy, store); err != nil {
			return err
		}
	}
	return nil
}

// private returns the stores below home directories that no table has. The files of the project that the
// command works on are its own.
func (s *ruleset) private(policy *sandbox.Resolved, homes []string, dir string,
	byContent finderOfSecrets) []grants.Store {
	if slices.Contains(policy.Named, grants.AllCredentials) {
		return nil
	}
	own := append(slices.Clone(s.roots), dir)
	var out []grants.Store
	for _, home := range homes {
		if policy.Root == sandbox.LevelDeny && !s.shows(policy, hostfacts.RealPath(home)) {
			continue
		}
		for _, store := range byContent(home) {
			inProject := func(root string) bool {
				return hostfacts.Below(store.Path, root) &&
					!hostfacts.Below(home, root)
			}
			if !slices.Contains(policy.Named, store.Grant()) && !slices.ContainsFunc(own, inProject) {
				out = append(out, store)
			}
		}
	}
	return out
}

// hideStore denies one store. A copy of settings is noted; where copies can be mounted, the caller shows it.
func (s *ruleset) hideStore(policy *sandbox.Resolved, store grants.Store) error {
	real := hostfacts.RealPath(store.Path) // it may be a link to where the user keeps it
	if old, ok := s.rules[real]; ok && !old.Auto || listed(policy, store.Path, real) {
		return nil
	}
	spot, err := hostfacts.Look(real)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && spot.Kind == plan.KindOther:
		return nil // a link that leads nowhere, or a socket
	case errors.Is(err, fs.ErrPermission):
		return nil // nor can the command look at it
	case err != nil:
		return uninspected(store.Path, err, "")
	}
	rule := plan.Rule{Spot: spot, Level: sandbox.LevelDeny, Why: whyCredentials + store.Grant(), Auto: true}
	if !s.shows(policy, real) {
		s.invisible = append(s.invisible, rule)
		return nil
	}
	_, again := s.rules[real]
	c, copied := s.copies[real]
	switch {
	case !s.copying || store.Copy == nil || spot.Kind != plan.KindFile || again && !copied:
		delete(s.copies, real)
	default:
		s.copies[real] = Copy{Path: store.Path, Text: store.Copy, Grant: cmp.Or(c.Grant, store.Grant())}
	}
	s.rules[real] = rule
	return nil
}

// A Copy is what can be shown in the place of settings with a secret.
type Copy struct {
	Path  string // of the settings, as it is written
	Text  []byte
	Grant string // the name of the one that shows the file itself
}

// shows reports whether a path can be seen at all: a rule would only make it visible.
func (s *ruleset) shows(policy *sandbox.Resolved, path string) bool {
	if policy.Root != sandbox.LevelDeny {
		return true
	}
	for _, r := range s.rules {
		if r.Level != sandbox.LevelDeny && hostfacts.Below(path, r.Path) {
			return true
		}
	}
	return false
}

// listed reports whether an entry of the policy has one of the names of a store.
func listed(policy *sandbox.Resolved, names ...string) bool {
	return slices.ContainsFunc(policy.Paths, func(p sandbox.PathRule) bool {
		return !p.Auto &&
			slices.Contains(names, p.Path)
	})
}
