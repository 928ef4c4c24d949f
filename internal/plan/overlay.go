// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An Overlay shows a folder of the host to a command that may write to it, while
// what is written goes to a folder of ours.
type Overlay struct {
	Spot         // the host's folder, and where the command sees it
	Upper Spot   `json:"upper"`         // gets what is written
	Work  Spot   `json:"work"`          // the kernel's own
	Why   string `json:"why,omitempty"` // for the printed script
}

// Fits says in words why an overlay cannot show the folder name, a clean absolute
// path, beside the rules and /tmp of the request; it is empty when it can. An
// overlay never shows what the policy hides, and stands in nobody's way: it does
// not replace what a rule says about its own path or one below.
func (r *Request) Fits(name string) string {
	switch {
	case !path.IsAbs(name) || path.Clean(name) != name || name == "/":
		return "it is no folder of its own"
	case slices.ContainsFunc([]string{"/dev", "/proc", "/sys"}, func(s string) bool { return within(name, s) || within(s, name) }):
		return "it lies with the system's own folders"
	case slices.ContainsFunc(r.hiding(), func(s string) bool { return within(s, name) }):
		return "it holds a folder that the command has for itself"
	case r.LevelAt(name) == sandbox.LevelDeny:
		return "the policy denies it"
	case r.Hides(name):
		return "the command has another folder there"
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

// LevelAt returns the level that the rules give a path, before what stands over it.
func (r *Request) LevelAt(name string) sandbox.Level {
	level := r.Root
	for _, u := range r.Rules { // sorted, so the last one is the nearest
		if within(name, u.Path) {
			level = u.Level
		}
	}
	return level
}

// hiding are the folders over which folders of ours stand in any case.
func (r *Request) hiding() []string {
	if r.Tmp != nil {
		return []string{"/run", r.Tmp.At}
	}
	return []string{"/run"}
}

// Hides reports whether a path lies in a folder of ours, and no rule between the
// two brings the host's files back.
func (r *Request) Hides(name string) bool {
	for _, at := range r.hiding() {
		if !within(name, at) {
			continue
		}
		back := slices.ContainsFunc(r.Rules, func(u Rule) bool {
			return u.Path != at && within(u.Path, at) && within(name, u.Path) && u.Level != sandbox.LevelDeny && u.Kind != KindMissing
		})
		if !back {
			return true
		}
	}
	return false
}

// layoutOverlays gives every overlay its place.
func (n *native) layoutOverlays() {
	for i, o := range n.req.Overlays {
		why := n.req.Fits(o.Path)
		if why == "" && o.Kind != KindFolder {
			why = "it is no folder"
		}
		if why != "" {
			n.fail("a place for the overlay over "+o.Path, why, "leave it out")
			return
		}
		if slices.ContainsFunc(n.req.Overlays[:i], func(p Overlay) bool { return p.Path == o.Path }) {
			n.fail("one overlay over "+o.Path, "the request has two", "leave one out")
			return
		}
		n.mounts = append(n.mounts, mount{at: o.Path, overlay: i + 1, tree: n.newTree(), id: o.ID, why: o.Why})
	}
}

// overlays makes the overlays while the host's tree is still writable: the kernel
// keeps copies of the mounts that it finds. The copy of the shown folder's mount
// is read-only whatever the original is.
func (n *native) overlays() {
	for _, m := range n.mounts {
		if m.overlay == 0 {
			continue
		}
		o := n.req.Overlays[m.overlay-1]
		n.add(launch.Step{
			Op: launch.OpOverlay, Tree: m.tree, Path: o.Path, ID: o.ID,
			Layers: &launch.Layers{Upper: launch.Layer{Path: o.Upper.Path, ID: o.Upper.ID}, Work: launch.Layer{Path: o.Work.Path, ID: o.Work.ID}},
			Set:    launch.AttrNoSuid | launch.AttrNoDev, Label: o.Why,
		})
	}
}
