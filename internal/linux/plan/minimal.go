// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A policy whose root is denied shows listed paths and nothing else. Its root is a
// directory of ours in memory with a mount point for each of them. The command is moved
// into it (pivot_root(2)) before anything is mounted there: of the host's tree it has the
// copies that were taken before, and no path and no descriptor leads to the rest.

// minimal reports whether the command sees listed paths only.
func (n *nativePlan) minimal() bool { return n.req.Root == sandbox.LevelDeny }

// root adds the directory that becomes the command's root. It has the mount points of the
// system's own directories whatever the policy lists.
func (n *nativePlan) root() {
	if !n.minimal() {
		return
	}
	own := []string{"/proc"}
	for _, c := range n.covers {
		own = append(own, c.at)
	}
	if t := n.req.Tmp; t != nil {
		own = append(own, t.At)
	}
	n.covers = append(n.covers, &cover{at: "/", name: "root", mode: 0o755})
	for _, at := range own {
		n.point(Spot{Path: at, Kind: KindDirectory})
	}
}

// links gives every link to the directory of ours that covers it. In the private /tmp none
// is made: what exists belongs to the commands.
func (n *nativePlan) links() {
	for _, l := range n.req.Links {
		at := n.coverOver(l.Path)
		inWay := func(p Point) bool { return within(p.Path, l.Path) }
		for _, c := range n.covers {
			if c.at == at && !n.req.isTmp(at) && !slices.ContainsFunc(c.points, inWay) {
				c.links = append(c.links, l)
			}
		}
	}
}

// pivot moves into the new root. What can be made only while the host's tree is there is
// made before: the process file system, which the kernel gives only to a task that sees
// one, and here copies of the masks.
func (n *nativePlan) pivot(m masks) {
	if !n.minimal() {
		return
	}
	for i, o := range n.mounts {
		if o.mask {
			n.mounts[i].tree = n.copyMask(m, o.dir, "")
		}
	}
	for range n.host.ProcMasks {
		n.procMasks = append(n.procMasks, n.copyMask(m, false, ""))
	}
	for _, c := range n.covers {
		if c.at == "/" {
			n.add(
				launch.Step{Op: launch.OpAttach, Tree: c.tree, Path: staging,
					Label: "a root for what is listed"},
				launch.Step{Op: launch.OpPivot, Path: staging, Label: "the host's tree is gone"})
		}
	}
}

// check returns a *sandbox.HiddenError for the first thing that the command
// needs and does not see.
func (n *nativePlan) check() error {
	if n.minimal() {
		for _, need := range n.req.Needs {
			if !n.sees(need) {
				return &sandbox.HiddenError{What: need.What, Path: need.Path}
			}
		}
	}
	for i, s := range n.req.Stdio {
		if s.Directory && s.Reopen != nil && !n.shows(s.Reopen.Path) {
			return &sandbox.HiddenError{What: "standard " + stdioNames[i] + ", the directory",
				Path: s.Reopen.Path}
		}
	}
	return nil
}

var stdioNames = [3]string{"input", "output", "error"}

// sees reports whether a need is met.
func (n *nativePlan) sees(need Need) bool {
	if n.shows(need.Path) || within(need.Path, "/proc") {
		return true
	}
	for _, c := range n.covers {
		if slices.ContainsFunc(c.links, func(l Link) bool { return l.Path == need.Path }) {
			return true
		}
		if need.Dir && slices.ContainsFunc(c.points,
			func(p Point) bool { return within(p.Path, need.Path) }) {
			return true
		}
	}
	t := n.req.Tmp
	return need.Dir && t != nil && within(need.Path, t.At) // the kernel says what is missing there
}

// shows reports whether the command sees the host's file at a path.
func (n *nativePlan) shows(name string) bool {
	switch shown := slices.ContainsFunc(n.shown, func(s Spot) bool { return within(name, s.Path) }); {
	case within(name, "/proc"):
		return name != "/proc" && n.mountAt(name, true) != nil
	case n.isCover(name):
		return n.mountAt(name, true) != nil
	case n.coverOver(name) == "":
		return (n.req.LevelAt(name) != sandbox.LevelDeny || shown && !n.req.denies(name)) &&
			!n.req.isTmp(name)
	case shown:
		return !n.req.denies(name)
	}
	return n.mountAt(name, true) != nil && !n.req.isTmp(name)
}
