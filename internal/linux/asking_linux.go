// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/observer"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// asks returns why no call of a command can wait for an answer; nil where it can, or need not.
func asks(spec *executor.Spec, level, unobserved string) error {
	if spec.AskAccess == nil || level == plan.LevelNone {
		return nil
	}
	have := cmp.Or(unobserved, "nothing observes the command at the level "+level)
	if spec.NoObserver {
		have = "the observer is turned off"
	}
	return &sandbox.UnsupportedError{Need: "calls that wait for an answer", Have: have,
		Hint: "run it without --ask-writes, or see sallyport doctor"}
}

// closings are the paths of a run that no answer opens.
type closings struct {
	paths []sandbox.PathRule // of the policy
	rules []plan.Rule        // in the order of their paths
	never []string           // with what is below them
	globs bool               // the policy has patterns
	links func() []string    // of [grants.ShutLinks]
}

// asking returns what decides about denied accesses; nil without [executor.Spec.AskAccess]. Missing are
// protected names that do not exist.
func (a *attempt) asking(missing []string) *observer.Asking {
	if a.spec.AskAccess == nil {
		return nil
	}
	state, noState := dirs.Protected()
	settings := dirs.ProtectedDirs(os.Getenv, grants.Homes())
	never := slices.Concat(missing, state, noState, settings, []string{"/dev", "/proc", "/sys"})
	if file := dirs.ProtectedFile(os.Getenv); file != "" {
		never = append(never, file)
	}
	if own, err := os.Executable(); err == nil {
		never = append(never, own)
	}
	for _, name := range slices.Clone(never) {
		never = append(never, hostfacts.RealPath(name))
	}
	c := &closings{paths: a.resolved.Paths, rules: a.names.Rules(), never: never}
	c.globs = len(a.resolved.Globs) > 0
	c.links = sync.OnceValue(func() []string { return grants.ShutLinks(grants.Homes(), hostfacts.RealPath) })
	return &observer.Asking{Opens: c.opens, Ask: a.spec.AskAccess}
}

// opens reports whether a grant may open a path to be written to; with tree, what is below it moves or
// vanishes with it. It is not for what the observer's judge closes.
func (c *closings) opens(name string, tree bool) bool {
	below := func(at string) bool { return hostfacts.Below(name, at) }
	above := func(at string) bool { return tree && hostfacts.Below(at, name) }
	var nearest plan.Rule
	for _, r := range c.rules {
		switch {
		case above(r.Path), besideSecrets(name, &r):
			return false
		case below(r.Path) && !r.Pin:
			nearest = r
		}
	}
	switch {
	case tree && c.globs, grants.Shut(name, tree), slices.ContainsFunc(c.links(), below),
		slices.ContainsFunc(c.links(), above), slices.ContainsFunc(c.never, below),
		slices.ContainsFunc(c.never, above):
		return false
	case nearest.Path != "" && nearest.Level != sandbox.LevelWrite && !c.chosen(&nearest):
		return false
	}
	return !ofTools(name)
}

// besideSecrets reports whether a path is in a hidden directory, such as ~/.ssh, in which a rule hides a
// file.
func besideSecrets(name string, r *plan.Rule) bool {
	dir := filepath.Dir(r.Path)
	return r.Level == sandbox.LevelDeny && strings.HasPrefix(filepath.Base(dir), ".") &&
		hostfacts.Below(name, dir)
}

// chosen reports whether a rule is an entry of the policy for reading alone, which narrower grants open.
func (c *closings) chosen(r *plan.Rule) bool {
	return r.Level == sandbox.LevelRead && slices.ContainsFunc(c.paths, func(p sandbox.PathRule) bool {
		return p.Level == sandbox.LevelRead && !p.Auto && hostfacts.RealPath(p.Path) == r.Path
	})
}

// ofTools reports whether programs outside run or obey what has a name by itself, wherever it is: what
// git obeys in its directories, with the locks that become it, and all of the other protected names.
func ofTools(name string) bool {
	for at := name; at != "/"; at = filepath.Dir(at) {
		base, rest := filepath.Base(at), strings.TrimPrefix(name[len(at):], "/")
		isGit := base == ".git" || at != name && git.IsBare(at)
		if isGit && !git.Writable(strings.TrimSuffix(rest, ".lock")) ||
			base != ".git" && slices.Contains(sandbox.ProtectedNames(), base) {
			return true
		}
	}
	return false
}
