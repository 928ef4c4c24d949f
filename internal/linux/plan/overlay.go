// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An Overlay shows a directory of the host to a command that may write to it, while
// writes go to a directory of ours.
type Overlay struct {
	Spot       // the host's directory, and where the command sees it
	Upper Spot // gets what is written
	Work  Spot // the kernel's own
	// at most launch.MaxLower, shown between Upper and the host's directory, the first one uppermost
	Lower []Spot
	Why   string // for the printed script

	// Private says that the directory is one of ours: a rule of the request makes it
	// visible, and the overlay goes over it.
	Private bool
}

// Fits returns why an overlay cannot show the directory name, a clean absolute path,
// beside the rules and /tmp of the request; empty when it can. An overlay never shows what
// the policy hides, and never replaces what a rule says about its own path or one below.
func (r *Request) Fits(name string) string {
	switch {
	case !path.IsAbs(name) || path.Clean(name) != name || name == "/":
		return "it is not a directory of its own"
	case slices.ContainsFunc([]string{"/dev", "/proc", "/sys"},
		func(s string) bool { return within(name, s) || within(s, name) }):
		return "it is among the system's own directories"
	case slices.ContainsFunc(r.covers(), func(s string) bool { return within(s, name) }):
		return "it holds a directory that is private to the command"
	case r.LevelAt(name) == sandbox.LevelDeny:
		return "the policy denies it"
	case r.Hides(name):
		return "the command has another directory there"
	}
	for _, u := range r.Rules {
		if within(u.Path, name) && u.Kind != KindMissing {
			return "the policy has a rule for " + u.Path
		}
	}
	for _, o := range r.Overlays {
		if o.Path != name && (within(name, o.Path) || within(o.Path, name)) {
			return "it overlaps with " + o.Path
		}
	}
	return ""
}

// layoutOverlays gives every overlay its place.
func (n *nativePlan) layoutOverlays() {
	for i, o := range n.req.Overlays {
		why := ""
		if !o.Private {
			why = n.req.Fits(o.Path)
		}
		if why == "" && o.Kind != KindDirectory {
			why = "it is not a directory"
		}
		if why != "" {
			n.fail("a place for the overlay over "+o.Path, why, "leave it out")
			return
		}
		if slices.ContainsFunc(n.req.Overlays[:i], func(p Overlay) bool { return p.Path == o.Path }) {
			n.fail("one overlay over "+o.Path, "the request has two", "leave one out")
			return
		}
		n.mounts = append(n.mounts, mount{at: o.Path, overlay: i + 1, tree: n.newTree(),
			id: o.ID, why: o.Why})
	}
}

// overlays makes the overlays while the host's tree is still writable: the kernel keeps
// copies of the mounts that it finds. The copy of the shown directory's mount is read-only
// whatever the original is.
func (n *nativePlan) overlays() {
	for _, m := range n.mounts {
		if m.overlay == 0 {
			continue
		}
		o := n.req.Overlays[m.overlay-1]
		layers := &launch.Layers{Upper: launch.Layer{Path: o.Upper.Path, ID: o.Upper.ID},
			Work: launch.Layer{Path: o.Work.Path, ID: o.Work.ID}}
		for i, l := range o.Lower {
			layers.Lower[i] = launch.Layer{Path: l.Path, ID: l.ID}
		}
		n.add(launch.Step{
			Op: launch.OpOverlay, Tree: m.tree, Path: o.Path, ID: o.ID, Layers: layers,
			Set: launch.AttrNoSuid | launch.AttrNoDev, Label: o.Why,
		})
	}
}
