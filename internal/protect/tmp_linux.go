// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// tmpFolder looks at a folder that shall stand at /tmp. The command may write
// everywhere in it, and no rule for its own path holds there: so nothing may be
// in it that the policy keeps from the command, and no command may have chosen it.
func (g *gathering) tmpFolder(want string, spot plan.Spot) error {
	rules := g.sorted()
	refuse := func(why, mend string) error {
		return &executor.RootError{Path: want, Why: "cannot stand at /tmp: " + why, Fix: mend}
	}
	for _, l := range hostfacts.Links(want) {
		if slices.ContainsFunc(rules, func(r plan.Rule) bool {
			return r.Level == sandbox.LevelWrite && r.Path != l.Path && hostfacts.Below(l.Path, r.Path)
		}) {
			return refuse(fmt.Sprintf("it leads through the symbolic link %s, which lies in a writable root and can be changed by the command", l.Path), "name the folder itself")
		}
	}
	for _, system := range []string{"/proc", "/sys", "/dev"} {
		if hostfacts.Below(spot.Path, system) && !hostfacts.Below(spot.Path, "/dev/shm") {
			return refuse("it belongs to the system", "name a folder of your own")
		}
	}
	if spot.Path == "/" {
		return refuse("it is the whole disk", "name a folder of your own")
	}
	level := sandbox.LevelWrite
	for _, r := range rules { // sorted, so the last one is the nearest
		switch {
		case r.Kind == plan.KindMissing:
		case hostfacts.Below(spot.Path, r.Path):
			level = r.Level
		case hostfacts.Below(r.Path, spot.Path) && r.Level != sandbox.LevelWrite:
			return refuse(fmt.Sprintf("the policy keeps %s in it from being written or read, which would not hold there", r.Path), "name another folder")
		}
	}
	if level == sandbox.LevelDeny {
		return refuse("the policy denies it", "name another folder")
	}
	for _, c := range slices.Concat(g.claims, g.late) {
		if hostfacts.Below(c.Path, spot.Path) {
			return refuse(fmt.Sprintf("the policy keeps %s in it from coming into being, which would not hold there", c.Path), "name another folder")
		}
	}
	if obeyed := g.hold(spot.Path); obeyed != "" {
		return refuse(fmt.Sprintf("tools outside obey %s, and nothing would protect it there", obeyed), "name another folder")
	}
	return nil
}

// hideState keeps commands from our records and from other runs' private folders,
// wherever they lie and whatever stands at /tmp.
func (g *gathering) hideState(dirs ...string) {
	slices.Sort(dirs)
	for _, d := range slices.Compact(dirs) {
		if s, err := hostfacts.Look(hostfacts.RealPath(d)); err == nil && s.Kind == plan.KindFolder {
			g.rules[s.Path] = plan.Rule{Spot: s, Level: sandbox.LevelDeny, Why: "sallyport's own state", Auto: true}
		}
	}
}

// tmpFor decides what stands at /tmp.
func (g *gathering) tmpFor(q *Request) (*plan.Tmp, error) {
	at, want := hostfacts.RealPath("/tmp"), q.Tmp
	if r, ok := g.rules[at]; ok && r.Level == sandbox.LevelDeny {
		return nil, nil
	}
	switch {
	case want == "host":
		return nil, nil
	case want == "" || want == "private":
	case filepath.IsAbs(want):
		spot, err := hostfacts.Look(hostfacts.RealPath(want))
		if err != nil || spot.Kind != plan.KindFolder {
			return nil, &executor.RootError{Path: want, Why: "cannot stand at /tmp, because it is not a folder", Fix: "create it first"}
		}
		return &plan.Tmp{At: at, Source: spot, Asked: true}, nil
	default:
		return nil, &executor.RootError{Path: want, Why: "cannot stand at /tmp", Fix: "use private, host, or an absolute path"}
	}
	source, err := hostfacts.Look(q.PrivateTmp)
	if err != nil {
		return nil, fmt.Errorf("the private /tmp was removed while it is in use: %w", &fs.PathError{Op: "lstat", Path: q.PrivateTmp, Err: err})
	}
	return &plan.Tmp{At: at, Source: source}, nil
}
