// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package protect

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// whyLater begins the reason of a rule for a name that other programs run or obey later; its
// grant follows.
const whyLater = "other programs run or obey it later; opened by --grant "

// protectLater makes the names at the top of a writable root read-only that other programs run
// or obey later, where they exist. Names that an entry of the policy or a grant opens stay
// writable. It returns what was seen at all names but those that an entry is about.
func (s *ruleset) protectLater(root string, granted []string) ([]grants.SeenTool, error) {
	tools, err := grants.LookForTools(root)
	if err != nil {
		return nil, uninspected(root, err, "")
	}
	var ends []grants.SeenTool // of links, where nothing is yet
	seen := tools[:0]
	for _, at := range tools {
		if _, ruled := s.rules[at.Path]; ruled {
			continue
		}
		seen = append(seen, at)
		if at.Stat == nil || slices.Contains(granted, at.Grant) || at.Tracked &&
			slices.Contains(granted, GrantGit) || isEnvironment(at) {
			continue
		}
		end, err := s.protectTool(at)
		if err != nil {
			return nil, err
		}
		ends = append(ends, end...)
	}
	return append(seen, ends...), nil
}

// protectTool makes what exists at a name read-only. It returns the end of a link at which nothing is yet.
func (s *ruleset) protectTool(at grants.SeenTool) (ends []grants.SeenTool, err error) {
	spot := hostfacts.SpotOf(at.Path, at.Stat)
	switch {
	case spot.Kind == plan.KindLink:
		end, err := s.protectLinked(at)
		if err == nil && end != "" {
			at.Name, at.Path, at.Stat = filepath.Base(end), end, nil
			ends = append(ends, at)
		}
		return ends, err
	case spot.Kind == plan.KindOther && at.Home:
		return nil, nil // no program obeys a pipe or a socket there
	case spot.Kind == plan.KindOther:
		return nil, notLater(at)
	}
	if s.byName {
		spot.ID = launch.ID{}
	}
	s.add(plan.Rule{Spot: spot, Level: sandbox.LevelRead, Why: whyLater + at.Grant, Auto: true})
	return nil, nil
}

// allHomes returns the home directories, without links, that are in writable roots or have some in them:
// those of this user, and those of all users by their names in the user database.
func (s *ruleset) allHomes(own []string) []string {
	var homes []string
	for i, home := range slices.Concat(own, grants.LoginHomes()) {
		near := func(root string) bool { return grants.HoldsHome(root, home) }
		if i < len(own) {
			home = hostfacts.RealPath(home)
		}
		if home != "/" && slices.ContainsFunc(s.roots, near) && !slices.Contains(homes, home) {
			homes = append(homes, home)
		}
	}
	return homes
}

// A missingTool is a name in a home directory at which nothing exists.
type missingTool struct {
	path, grant string
	deep        bool // its directory does not exist either
}

// protectHome makes the names in a home directory read-only that exist where the policy lets commands
// write, and returns those that are missing, and what was there at the names that commands may make or
// that others may replace.
func (s *ruleset) protectHome(home string, granted []string) (
	missing []missingTool, seen []grants.SeenTool, err error) {
	dirs := homeDirs{}
	for _, root := range s.roots {
		for _, at := range grants.LookInHome(home, root) {
			opened := slices.Contains(granted, at.Grant) || isFreeBin(at)
			if at.Stat != nil || opened {
				seen = append(seen, at)
			}
			if opened {
				continue
			}
			if !at.Deep {
				dir := dirs.resolve(s, filepath.Dir(at.Path))
				at.Path, at.Deep = filepath.Join(dir.real, filepath.Base(at.Path)), dir.missing
			}
			_, ruled := s.rules[at.Path]
			above, _ := s.nearest(at.Path)
			switch {
			case ruled, above.Level != sandbox.LevelWrite:
			case at.Stat == nil:
				missing = append(missing, missingTool{at.Path, at.Grant, at.Deep})
			default:
				ends, err := s.protectTool(at)
				if err != nil {
					return nil, nil, err
				}
				seen = append(seen, ends...)
			}
		}
	}
	return missing, seen, nil
}

// homeDirs are directories of names in a home directory.
type homeDirs map[string]homeDir

type homeDir struct {
	real    string // without links; "/" where it cannot be known, and commands cannot write
	missing bool
}

// resolve looks at a directory, and keeps the links on the way as they are, where that can be done.
func (ds homeDirs) resolve(s *ruleset, dir string) homeDir {
	d, known := ds[dir]
	if known {
		return d
	}
	real, links, err := s.resolve(dir)
	if err == nil && s.fixes {
		err = s.fix(links, whyLink)
	}
	if d.real = real; err != nil {
		d.real = "/"
	}
	st, err := os.Lstat(d.real)
	d.missing = err != nil || !st.IsDir()
	ds[dir] = d
	return d
}

// isFreeBin reports whether a name is that of a directory for programs which does not stand in PATH, as
// many projects have one. A new one is named.
func isFreeBin(at grants.SeenTool) bool {
	return at.Name == "bin" && !slices.Contains(filepath.SplitList(os.Getenv("PATH")), at.Path)
}

// protectLinked keeps a link as it is and makes read-only what it leads to, where the command could
// write to it, or returns where nothing is yet. Where nothing can be mounted over links, one at a name
// where they are usual can be replaced; what exists at the end is then named.
func (s *ruleset) protectLinked(at grants.SeenTool) (end string, err error) {
	real := hostfacts.RealPath(at.Path)
	if s.fixes || !at.Linked {
		hint := hintLink + orGrant(at)
		target, err := s.linked(at.Path, whyLater+at.Grant, hint)
		if err != nil || target == "" {
			return "", err
		}
		real = target
	}
	if !s.inRoot(real) || slices.Contains(s.roots, real) {
		return "", nil // it leads out of what the command can change
	}
	spot, err := hostfacts.Look(real)
	if missing(err) {
		return real, nil
	}
	if above, ok := s.nearest(real); err != nil || spot.Kind == plan.KindOther ||
		ok && above.Level == sandbox.LevelDeny {
		return "", nil //nolint:nilerr // it leads nowhere, or a rule would show it
	}
	if s.byName {
		spot.ID = launch.ID{}
	}
	s.add(plan.Rule{Spot: spot, Level: sandbox.LevelRead, Why: whyLater + at.Grant, Auto: true})
	return "", nil
}

// isEnvironment reports whether a directory of direnv holds environments of Python, into which packages are
// installed all the time: they are as much in the command's hands as others in the workspace.
func isEnvironment(at grants.SeenTool) bool {
	if filepath.Base(at.Path) != ".direnv" {
		return false
	}
	found, _ := filepath.Glob(filepath.Join(at.Path, "*", "pyvenv.cfg")) // the pattern is right
	return len(found) > 0
}

// notLater returns the error for a name at which there is neither a directory nor a file nor a link.
func notLater(at grants.SeenTool) error {
	what := "gone" // by now
	if info, err := os.Lstat(at.Path); err == nil {
		what = "a " + hostfacts.KindWord(info.Mode())
	}
	return &sandbox.UnsupportedError{
		Need: "a directory or file at " + at.Path + ", which other programs run or obey later",
		Have: "it is " + what,
		Hint: "remove it, move it away" + orGrant(at),
	}
}

// orGrant is the end of a hint about a name.
func orGrant(at grants.SeenTool) string {
	return fmt.Sprintf(", or use %s, with which it is not protected", sandbox.Grant{Name: at.Grant})
}
