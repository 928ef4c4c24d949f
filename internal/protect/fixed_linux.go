// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// whyFixed is for what an approved command runs.
const whyFixed = "an approved command that runs depends on it"

// closeFixed makes files read-only that approved commands run, and of links the directories that they
// are in, but for writable roots.
func (g *gathering) closeFixed(names []string) error {
	for _, name := range names {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
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
