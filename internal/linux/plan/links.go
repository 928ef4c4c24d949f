// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// contentWrites are the rights to open a file for writing. Where hard links are protected a
// command has neither in shared places: the observer opens files there and hands them in.
const contentWrites = launch.LandlockWriteFile | launch.LandlockTruncate

// linksProtectable returns an error where hard links are to be protected and cannot be.
func (r *Request) linksProtectable(h *Host) error {
	if !r.Spec.ProtectHardLinks {
		return nil
	}
	no := func(have, hint string) error { return unsupported("protection of hard links", have, hint) }
	const leave = "do not ask for that protection"
	switch {
	case r.unconfined():
		return no("full access builds no sandbox", "use another policy, or "+leave)
	case h.System != "linux" || r.Level != LevelNative && r.Level != "":
		return no("only the native level on Linux can enforce it", leave+
			", or use a machine with the native level")
	case !r.Observe && r.Unobserved == "":
		return no("the observer, which opens the files, is turned off", "turn the observer on")
	case !r.Observe:
		return no("the observer, which opens the files, is not available: "+r.Unobserved, leave)
	case slices.Contains(r.Spec.Allow, "userns"):
		return no("files in namespaces of the command's own cannot be told apart", "do not open userns")
	}
	for _, u := range r.Rules {
		if u.Level == sandbox.LevelWrite && within(u.Path, "/dev") {
			return no("it cannot cover /dev, and the policy makes "+u.Path+" writable", "remove that entry")
		}
	}
	return h.landlockFrom(LandlockLeast, "6.2")
}

// SharedPlaces returns the writable places with files of the host. A private directory with
// such a place in it is one of them, because a rule for it would hold there, too.
func (r *Request) SharedPlaces() []string {
	var out []string
	for _, u := range r.Rules {
		if u.Level == sandbox.LevelWrite && u.Kind != KindMissing && !r.isTmp(u.Path) && !r.staged(u.Path) {
			out = append(out, u.Path)
		}
	}
	for _, at := range r.OwnPlaces() {
		asked := r.isTmp(at) && r.Tmp.Asked && !r.staged(r.Tmp.Source.Path)
		if asked || slices.ContainsFunc(out, func(p string) bool { return within(p, at) }) {
			out = append(out, at)
		}
	}
	return out
}

// OwnPlaces returns the places that only the command writes to, besides /dev and /proc. They
// and the shared ones may lie in each other; the nearest counts, and of one that is both
// that it is shared.
func (r *Request) OwnPlaces() []string {
	var out []string
	if r.Tmp != nil {
		out = append(out, r.Tmp.At)
	}
	for _, o := range r.Overlays {
		out = append(out, o.Path)
	}
	for _, u := range r.Rules {
		if u.Level == sandbox.LevelWrite && u.Kind != KindMissing && !u.Pin && r.staged(u.Path) {
			out = append(out, u.Path)
		}
	}
	return out
}
