// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"fmt"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// bound returns an error if the policy that the Cmd has is wider than the Runner's.
func (x *execution) bound() error {
	if !x.narrowed {
		return nil
	}
	var real func(string) string
	if x.host.Local {
		real = hostfacts.Deepest
	}
	if err := x.others.Bounds(x.alone, real); err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return nil
}

// wholeDisk refuses a policy for which "/" is a workspace or a writable root. Beside an
// entry that shows the disk read-only the stricter of the two would count, so nothing
// would be writable, without a word about it. A policy that says ":root=write" means it,
// and the executor says whether that is available.
func wholeDisk(p, bound sandbox.Policy, dir string) error {
	if p.Mode() != sandbox.Managed || p.Unrestricted() {
		return nil
	}
	meant := slices.ContainsFunc(p.Entries(), func(e sandbox.Entry) bool {
		return e.Place.Kind == sandbox.PlaceSpecial && e.Place.Token == sandbox.TokenRoot && e.Level == sandbox.LevelWrite
	})
	written := slices.ContainsFunc(bound.Entries(), func(e sandbox.Entry) bool {
		return e.Place.Kind == sandbox.PlacePath && e.Place.Path == "/" && e.Level == sandbox.LevelWrite
	})
	if meant || !written {
		return nil
	}
	why := "as a writable root would make the whole disk writable"
	if dir == "/" {
		why = "as the workspace would make the whole disk writable"
	}
	return &executor.RootError{Path: "/", Why: why, Fix: "name a directory, or use a read-only policy"}
}

// warnings lists parts of the policy that are likely not meant.
func (x *execution) warnings(home string) []string {
	var real func(string) string
	if x.host.Local { // else the paths are those of another machine
		real = hostfacts.RealPath
	}
	out := x.policy.Warnings(home, real)
	if real != nil && x.privateTmp() && x.cmd.Tmp == "" && real(x.dir) == real("/tmp") {
		out = append(out, printable.Word(x.dir)+" is a private directory that starts empty and is removed with the runner; set Tmp to \"host\" for the host's")
	}
	return out
}
