// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// readMounts reads what is mounted where. Without it paths are protected by their own
// names only.
func (g *inspection) readMounts(mounts *hostfacts.Mounts) {
	g.table = new(hostfacts.MountTable)
	if !g.mounts {
		return // nothing can be covered
	}
	table, err := mounts.Table()
	if err == nil {
		g.table = table
		if _, known := table.Aliases("/"); !known {
			err = errors.New("the root directory of this process is not the root of a mount")
		}
	}
	if err != nil {
		g.warn(fmt.Errorf("other mounts of what is denied or protected are not searched for: %w", err))
	}
}

// closeAliases gives what rules restrict the same level wherever it is visible a second
// time: through another mount of its file system, of a part of it, or of a file system that
// is mounted below it. What such a path leads to is compared, because the table of mounts
// may have changed, and the roots in it are not paths for every file system.
func (g *inspection) closeAliases(rules []plan.Rule) {
	for _, r := range rules {
		if r.Level == sandbox.LevelWrite || r.Kind == plan.KindMissing || r.Why == whyHung {
			continue
		}
		names := []string{r.Path}
		if r.Kind == plan.KindDirectory && (r.Auto || r.Level == sandbox.LevelDeny) {
			names = append(names, g.table.Within(r.Path)...)
		}
		g.closeAliasesOf(names, r)
	}
}

// closeAliasesOf does it for paths that one rule is about, the topmost first.
func (g *inspection) closeAliasesOf(names []string, r plan.Rule) {
	var open []string // what stays visible, with what is below
	for _, name := range names {
		paths, _ := g.table.Aliases(name)
		for _, path := range paths {
			if g.unseen(path) || g.level(path) <= r.Level ||
				slices.ContainsFunc(open, func(dir string) bool { return hostfacts.Below(path, dir) }) {
				continue
			}
			spot, same := look(name, path)
			if !same {
				continue
			}
			if why := g.openAlias(path, r.Level); why != "" {
				open = append(open, path)
				g.warn(fmt.Errorf("%s is %s, but is also visible at %s, %s", name,
					levelWord(r.Level), path, why))
				continue
			}
			g.rules[path] = plan.Rule{Spot: spot, Level: r.Level, Why: "also visible at " + name + ": " +
				r.Why, Auto: true}
			if slices.Contains(g.replaceable, r.Path) {
				g.replaceable = append(g.replaceable, path)
			}
		}
	}
}

// look says what is at a second path, and whether it is what is at the first one.
func look(name, path string) (plan.Spot, bool) {
	at, err := hostfacts.Look(path)
	if err != nil {
		return at, false // it cannot be reached there
	}
	first, err := hostfacts.Look(name)
	return at, err == nil && at.ID == first.ID && at.Kind == first.Kind
}

// unseen reports whether the command has something else than the host's file at a path.
func (g *inspection) unseen(path string) bool {
	if hostfacts.Below(path, "/proc") || hostfacts.Below(path, "/sys") {
		return true
	}
	for _, own := range []string{"/dev", "/run", g.tmpAt} {
		if own == "" || !hostfacts.Below(path, own) {
			continue
		}
		if r, ok := g.nearest(path); !ok || r.Path == g.tmpAt || !hostfacts.Below(r.Path, own) {
			return true
		}
	}
	return false
}

// openAlias says why what is visible at a second path stays as it is, or is empty.
func (g *inspection) openAlias(path string, level sandbox.Level) string {
	if r, ok := g.rules[path]; ok && !r.Auto {
		return "which an entry of the policy opens"
	}
	if level != sandbox.LevelDeny {
		return ""
	}
	if r, ok := g.nearest(g.dir); path == "/" || hostfacts.Below(g.dir, path) &&
		(!ok || !hostfacts.Below(r.Path, path)) {
		return "where the command has its working directory"
	}
	return ""
}

// writable reports whether the command can write to a path, also where it is visible a
// second time. Nothing has to exist there.
func (g *inspection) writable(path string) bool {
	if g.level(path) == sandbox.LevelWrite {
		return true
	}
	paths, _ := g.table.Aliases(path)
	return slices.ContainsFunc(paths, func(at string) bool {
		return g.level(at) == sandbox.LevelWrite &&
			!g.unseen(at)
	})
}

func levelWord(l sandbox.Level) string {
	if l == sandbox.LevelDeny {
		return "denied"
	}
	return "read-only"
}
