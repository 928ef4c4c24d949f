// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A staged command sees the roots of its stage in the place of the host's directories and files, whatever
// its rules make of them: they are mounted in the host's tree when that is read-only, and what the rules show
// of it is copied from there. So one overlay serves a writable directory with everything that is read-only,
// denied or writable again in it, a directory of the host's at /tmp, and roots that lie in each other.
// The stage is not known by the identities of files: its own ones differ, and commands change it.

// A Staged is a root of a stage.
type Staged struct {
	Spot       // of the host, which stays as it is: a directory, or a single file
	Upper Spot // of a directory what is written; of a file its copy
	Work  Spot // the kernel's own, of a directory
	// Tree is the overlay as another command has made it, as launch.OpTake counts; 0 has it made.
	Tree int
}

// staged reports whether a path is seen through the stage.
func (r *Request) staged(name string) bool {
	return slices.ContainsFunc(r.Staged, func(s Staged) bool { return within(name, s.Path) })
}

// id returns the identity by which what is at a path is checked: none where it is the stage's.
func (r *Request) id(s Spot) launch.ID {
	if r.staged(s.Path) {
		return launch.ID{}
	}
	return s.ID
}

// stagedOverlays makes the overlays of the stage, or takes them, while the host's tree is writable.
func (n *nativePlan) stagedOverlays() {
	n.stages = make([]int, len(n.req.Staged))
	for i, s := range n.req.Staged {
		const attributes = launch.AttrNoSuid | launch.AttrNoDev
		switch {
		case s.Kind == KindFile:
			n.stages[i] = n.tree(launch.Step{Op: launch.OpClone, Path: s.Upper.Path, ID: s.Upper.ID,
				Label: "the stage's copy of " + s.Path})
			n.add(launch.Step{Op: launch.OpSetTree, Tree: n.stages[i], Private: true, Set: attributes})
		case s.Tree > 0:
			n.stages[i] = n.tree(launch.Step{Op: launch.OpTake, From: s.Tree,
				Label: "the stage over " + s.Path})
		default:
			layers := &launch.Layers{Upper: launch.Layer{Path: s.Upper.Path, ID: s.Upper.ID},
				Work: launch.Layer{Path: s.Work.Path, ID: s.Work.ID}}
			n.stages[i] = n.tree(launch.Step{Op: launch.OpOverlay, Path: s.Path, ID: s.ID, Layers: layers,
				Set: attributes, Label: "the stage over " + s.Path})
			if n.req.Shared.trees() { // of what was attached once, or copied, no other namespace takes a copy
				n.add(launch.Step{Op: launch.OpShare, Tree: n.stages[i],
					Label: "commands of this sandbox share it"})
				n.stages[i] = n.tree(launch.Step{Op: launch.OpClone, From: n.stages[i]})
			}
		}
	}
}

// attachStaged puts the stage into the host's tree, which is read-only by now, and copies what is writable in
// it. The roots are sorted, so that one in another one lies over that.
func (n *nativePlan) attachStaged() {
	if len(n.req.Staged) == 0 {
		return
	}
	for i, s := range n.req.Staged {
		outer := slices.ContainsFunc(n.req.Staged[:i], func(o Staged) bool { return within(s.Path, o.Path) })
		id := s.ID
		if outer {
			id = launch.ID{}
		}
		n.add(launch.Step{Op: launch.OpAttach, Tree: n.stages[i], Path: s.Path, ID: id, Label: "staged"})
	}
	n.cloneWritable(true)
	for _, s := range n.req.Staged {
		n.add(launch.Step{Op: launch.OpSetMount, Path: s.Path, Set: launch.AttrReadOnly})
	}
}

// unstaged returns an error for a writable directory or file of the host that is in no root of the stage.
func (n *nativePlan) unstaged() {
	if len(n.req.Staged) == 0 {
		return
	}
	for _, u := range n.req.Rules {
		if Stages(n.req, &u) && !n.req.staged(u.Path) {
			n.fail("a stage for "+u.Path, "it is in no root of the stage", "use another stage")
		}
	}
}

// Stages reports whether a rule makes a directory or file of the host writable, which a stage keeps as it is.
func Stages(r *Request, u *Rule) bool {
	return u.Level == sandbox.LevelWrite && (u.Kind == KindDirectory || u.Kind == KindFile) && !u.Pin &&
		!r.isTmp(u.Path)
}
