// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// whyFixed is for what an approved command runs.
const whyFixed = "an approved command that runs depends on it"

// closeFixed makes files read-only that approved commands run, and of links the directories that they
// are in, but for writable roots. For what would be run if it were there it is the directory that is.
func (g *inspection) closeFixed(names []string) error {
	for _, name := range names {
		info, err := os.Lstat(name)
		for missing(err) && name != "/" {
			name = filepath.Dir(name)
			info, err = os.Lstat(name)
		}
		if err != nil {
			return uninspected(name, err, "")
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			name = filepath.Dir(name)
		}
		if _, ruled := g.rules[name]; ruled || g.level(name) != sandbox.LevelWrite {
			continue
		}
		spot, err := hostfacts.Look(name)
		if err != nil {
			return uninspected(name, err, "")
		}
		g.add(plan.Rule{Spot: spot, Level: sandbox.LevelRead, Why: whyFixed})
		g.replaceable = append(g.replaceable, name) // its owner may replace it, also while commands run
	}
	return nil
}

// whyOwn is for the program that builds the sandboxes.
const whyOwn = "sallyport's own program"

// closeOwn keeps the file of sallyport's own program as it is: the next run would be what a command
// put in its place. Its owner may replace it, also while commands run.
func (g *inspection) closeOwn(name string) error {
	if name == "" || !g.exposed(name) {
		return nil
	}
	if !g.mounts {
		g.warn(fmt.Errorf("commands can replace sallyport's own program %s, because nothing can be mounted over it at this level; move it to a directory where they cannot write", name))
		return nil
	}
	spot, err := hostfacts.Look(name)
	if missing(err) {
		return nil // as after an update
	}
	if err != nil {
		return uninspected(name, err, "")
	}
	if spot.Kind == plan.KindFile {
		g.add(plan.Rule{Spot: spot, Level: min(sandbox.LevelRead, g.level(spot.Path)),
			Why: whyOwn, Auto: true})
		g.replaceable = append(g.replaceable, name)
	}
	return nil
}
