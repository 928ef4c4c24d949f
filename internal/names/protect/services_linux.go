// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// showServices makes the sockets of granted services visible, each by its file and not by its
// directory, and what describes granted devices. It refuses a socket that the policy denies,
// and one whose path an earlier command could have led elsewhere.
func (g *inspection) showServices(found *grants.FoundServices) error {
	if found == nil {
		return nil
	}
	for _, txt := range found.Warnings {
		g.warnings = append(g.warnings, text.Line(txt))
	}
	for _, s := range found.Sockets {
		spot, err := g.look(s.Named, sandbox.LevelRead)
		if err != nil {
			return err
		}
		if near, _ := g.nearest(spot.Path); g.denies(spot.Path) {
			return &sandbox.UnsupportedError{
				Need: fmt.Sprintf("the socket %s for the grant %s", text.Word(s.Path), s.Grant),
				Have: fmt.Sprintf("%s is denied (%s)", text.Word(near.Path), near.Why),
				Hint: "leave one of the two out",
			}
		}
		if spot.ID != (launch.ID{Dev: s.Dev, Ino: s.Ino}) {
			return &executor.RootError{Path: s.Named, Why: "was replaced while the sandbox was planned",
				Fix: "run the command again"}
		}
		g.add(plan.Rule{Spot: spot, Level: sandbox.LevelRead, Why: "grant " + s.Grant})
		g.replaceable = append(g.replaceable, spot.Path) // an agent that ends removes it
	}
	for _, d := range found.Devices {
		if d.Dir == "" || g.denies(d.Dir) {
			continue // a denied one stays so
		}
		if spot, err := hostfacts.Look(d.Dir); err == nil && spot.Kind == plan.KindDirectory {
			g.add(plan.Rule{Spot: spot, Level: sandbox.LevelRead, Why: "grant " + grants.GPU, Auto: true})
		}
	}
	return nil
}

// denies reports whether the nearest rule for a path denies it.
func (g *inspection) denies(name string) bool {
	near, ok := g.nearest(name)
	return ok && near.Level == sandbox.LevelDeny
}
