// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package protect

import (
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/gitpaths"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// ByName turns a resolved policy into rules and patterns for a sandbox that judges by name.
// No placeholder is needed there. Stores of secrets in homes are hidden.
func ByName(policy *sandbox.Resolved, homes []string) ([]plan.Rule, []plan.Pattern, error) {
	s, err := newRuleset(policy, true, matchAnew)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range policy.Paths {
		if p.Level != sandbox.LevelWrite && p.Auto {
			if err := s.protect(p.Path); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, w := range policy.Writable {
		if root, ok := s.resolved[w.Root]; ok && s.rules[root].Kind == plan.KindDirectory {
			if _, err := s.protectLater(root, policy.Named); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := s.hideCredentials(policy, homes); err != nil {
		return nil, nil, err
	}
	for _, link := range s.links {
		if _, ok := s.rules[link.Path]; !ok {
			s.rules[link.Path] = plan.Rule{Spot: plan.Spot{Path: link.Path, Kind: plan.KindFile}, Level: sandbox.LevelRead, Why: "link to what is listed"}
		}
	}
	return s.sorted(), s.patterns, nil
}

// KernelName returns the name by which the kernel knows a path. Of a path that does not
// exist, the part that does is resolved.
func KernelName(name string) (string, error) {
	s := &ruleset{byName: true, entries: map[string][]string{}}
	real, _, err := s.resolve(name)
	return real, err
}

// protect adds a protected name, and what a .git there points to.
func (s *ruleset) protect(name string) error {
	dir, _, err := s.resolve(filepath.Dir(name))
	if err != nil {
		return &executor.RootError{Path: name, Why: "cannot be inspected: " + hostfacts.Reason(err)}
	}
	real := filepath.Join(dir, filepath.Base(name))
	st, err := os.Lstat(real)
	if err == nil {
		if err := notProtectable(real, st.Mode()); err != nil {
			return err
		}
	}
	if rerr := s.restrict(real, sandbox.LevelRead, whyName); rerr != nil || err != nil || filepath.Base(real) != ".git" {
		return rerr // restrict has returned the error of Lstat
	}
	return s.repository(dir)
}

// repository adds what the .git in a directory leads to, and the protected paths of git
// that a command may write to.
func (s *ruleset) repository(work string) error {
	r, err := gitpaths.Open(work)
	if err != nil || r == nil {
		return nil //nolint:nilerr // git cannot read it either; .git itself is protected
	}
	for _, dir := range []string{r.Dir, r.Common} {
		if err := s.restrict(dir, sandbox.LevelRead, whyGitDir); err != nil {
			return err
		}
	}
	// What cannot be read now ends git too, and the paths are right as far as they go.
	paths, _ := r.Protected(gitpaths.Surroundings(os.LookupEnv))
	for _, p := range paths {
		if !s.inRoot(p.Path) {
			continue // no command can write there; a rule would only make it visible
		}
		if err := s.restrict(p.Path, sandbox.LevelRead, p.Why); err != nil {
			return err
		}
	}
	return nil
}
