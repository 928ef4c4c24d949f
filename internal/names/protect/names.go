// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package protect

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// ByName turns a resolved policy into rules and patterns for a sandbox that judges by name.
// Stores of secrets in homes are hidden, and directories of settings are read-only.
func ByName(policy *sandbox.Resolved, homes, settings []string) ([]plan.Rule, []plan.Pattern, error) {
	s, err := newRuleset(policy, true, true, matchAnew, nil)
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
	for _, home := range s.allHomes(homes) {
		missing, _, err := s.protectHome(home, policy.Named)
		if err != nil {
			return nil, nil, err
		}
		for _, at := range missing { // what is made there later is judged by its name
			s.add(plan.Rule{Spot: plan.Spot{Path: at.path, Kind: plan.KindMissing}, Level: sandbox.LevelRead,
				Why: whyLater + at.grant, Auto: true})
		}
	}
	if err := s.hideCredentials(policy, homes, "", searchAnew); err != nil {
		return nil, nil, err
	}
	for _, dir := range settings {
		if err := s.keepSetting(dir); err != nil {
			return nil, nil, err
		}
	}
	for _, link := range s.links {
		if _, ok := s.rules[link.Path]; !ok {
			s.rules[link.Path] = plan.Rule{Spot: plan.Spot{Path: link.Path, Kind: plan.KindFile},
				Level: sandbox.LevelRead, Why: "link to what is listed"}
		}
	}
	return s.sorted(), s.patterns, nil
}

// keepSetting makes a directory of settings read-only that lies in a writable root, or is
// reached by a link there, which is an error.
func (s *ruleset) keepSetting(dir string) error {
	real, links, err := s.resolve(dir)
	if err != nil {
		if s.inRoot(hostfacts.Deepest(dir)) {
			return uninspected(dir, err, "settings in a writable place must be known")
		}
		return nil
	}
	if err := s.openedSetting(dir, real); err != nil {
		return err
	}
	if !s.inRoot(real) && !slices.ContainsFunc(links, func(l plan.Link) bool { return s.inRoot(l.Path) }) {
		return nil
	}
	return s.restrict(dir, sandbox.LevelRead, whySettings)
}

// openedSetting returns an error if a writable root is in the settings at a path, or nil.
func (s *ruleset) openedSetting(name, real string) error {
	i := slices.IndexFunc(s.roots, func(root string) bool { return hostfacts.Below(root, real) })
	if i < 0 {
		return nil
	}
	return &sandbox.UnsupportedError{
		Need: s.roots[i] + " read-only, because settings of sallyport are there (" + name + ")",
		Have: "the policy makes it writable",
		Hint: "change settings outside of the sandbox; leave it out of the policy, or use -s read-only there",
	}
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
		return uninspected(name, err, "")
	}
	real := filepath.Join(dir, filepath.Base(name))
	st, err := os.Lstat(real)
	if err == nil {
		if err := notProtectable(real, st.Mode()); err != nil {
			return err
		}
		if st.Mode()&fs.ModeSymlink != 0 {
			return s.protectTarget(real, dir)
		}
	}
	if rerr := s.restrict(real, sandbox.LevelRead, whyName); rerr != nil || err != nil ||
		filepath.Base(real) != ".git" {
		return rerr // restrict has returned the error of Lstat
	}
	return s.repository(dir)
}

// protectTarget adds a protected name that is a symbolic link, and what it leads to.
func (s *ruleset) protectTarget(name, dir string) error {
	target, err := s.linked(name, whyName, hintLink)
	if err != nil || target == "" {
		return err
	}
	if s.inRoot(target) && !slices.Contains(s.roots, target) {
		if err := s.restrict(target, sandbox.LevelRead, whyName); err != nil {
			return err
		}
	}
	if filepath.Base(name) == ".git" {
		return s.repository(dir)
	}
	return nil
}

// repository adds what the .git in a directory leads to, and the protected paths of git
// that a command may write to.
func (s *ruleset) repository(work string) error {
	r, err := git.Open(work)
	if err != nil || r == nil {
		return nil //nolint:nilerr // git cannot read it either; .git itself is protected
	}
	for _, dir := range []string{r.Dir, r.Common} {
		if err := s.restrict(dir, sandbox.LevelRead, whyGitDir); err != nil {
			return err
		}
	}
	// What cannot be read now ends git too, and the paths are right as far as they go.
	paths, _ := r.Protected(git.Surroundings(os.LookupEnv))
	for _, p := range paths {
		if !s.inRoot(p.Path) {
			continue // no command can write there; a rule would only make it visible
		}
		var err error
		if p.Symlink {
			err = s.fix([]plan.Link{{Path: p.Path}}, p.Why)
		} else {
			err = s.restrict(p.Path, sandbox.LevelRead, p.Why)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
