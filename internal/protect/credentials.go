// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package protect

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/credentials"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// whyCredentials begins the reason of a rule for a store of secrets; its grant follows.
const whyCredentials = "a store of secrets; opened by --grant "

// hideCredentials denies the stores of secrets that exist in home directories, except for those that a grant
// opens or that an entry of the policy is about. An entry for something in a store opens
// that and nothing else.
func (s *ruleset) hideCredentials(policy *sandbox.Resolved, homes []string) error {
	for _, store := range credentials.Find(homes, policy.Named) {
		real := hostfacts.RealPath(store.Path) // it may be a link to where the user keeps it
		if old, ok := s.rules[real]; ok && !old.Auto || listed(policy, store.Path, real) {
			continue
		}
		spot, err := hostfacts.Look(real)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && spot.Kind == plan.KindOther:
			continue // a link that leads nowhere, or a socket
		case errors.Is(err, fs.ErrPermission):
			continue // nor can the command look at it
		case err != nil:
			return uninspected(store.Path, err, "")
		}
		rule := plan.Rule{Spot: spot, Level: sandbox.LevelDeny, Why: whyCredentials + store.Grant(), Auto: true}
		if !s.shows(policy, real) {
			s.invisible = append(s.invisible, rule)
			continue
		}
		if !slices.Contains(s.hidden, store.Grant()) {
			s.hidden = append(s.hidden, store.Grant())
		}
		s.rules[real] = rule
	}
	slices.Sort(s.hidden)
	return nil
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
	return slices.ContainsFunc(policy.Paths, func(p sandbox.PathRule) bool { return !p.Auto && slices.Contains(names, p.Path) })
}
