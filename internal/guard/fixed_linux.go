// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// A fixture is something that a wall stands over and that must stay where it is. The
// kernel takes a mount away, in all namespaces, with the file or folder under it: an
// editor that saves by a rename takes a mask away from what it has saved.
type fixture struct {
	path, name string
	folder     *folder
	id         ident
	hold       *hold
}

// fix gives the fixture w to h.
func (k *keeper) fix(h *hold, w *want) error {
	l, err := lookAt(w.folder.fd, w.name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return &ExistsError{Path: w.Path, Kind: KindGone}
	case err != nil:
		return holdError(w.Path, "look at it", err)
	case !l.same(ident{dev: w.Dev, ino: w.Ino}):
		return &ExistsError{Path: w.Path, Kind: l.kind()}
	}
	x := &fixture{path: w.Path, name: w.name, folder: w.folder, id: l.ident, hold: h}
	w.folder.fixed = append(w.folder.fixed, x)
	h.fixed = append(h.fixed, x)
	return nil
}

// checkFixed finds out whether something else stands now at the fixture name in f.
// Where nothing stands there is nothing to protect. k.mu is held.
func (k *keeper) checkFixed(f *folder, name string) {
	for _, x := range f.fixed {
		if x.name != name {
			continue
		}
		if l, err := lookAt(f.fd, name); err == nil && !l.same(x.id) {
			x.lose("was replaced")
		}
	}
}

// movedFixed is for a folder whose path leads elsewhere now, to fd. k.mu is held.
func (f *folder) movedFixed(fd int) {
	for _, x := range f.fixed {
		if l, err := lookAt(fd, x.name); err == nil && !l.same(x.id) {
			x.lose("was replaced with its folder")
		}
	}
}

// lose tells the hold of x.
func (x *fixture) lose(what string) {
	if h := x.hold; h.why == nil && !h.over {
		h.breaks(&BrokenError{Path: x.path, What: what, Fixed: true})
	}
}

// unfix takes the fixtures of h away.
func (h *hold) unfix() {
	for _, x := range h.fixed {
		x.folder.fixed = slices.DeleteFunc(x.folder.fixed, func(o *fixture) bool { return o == x })
	}
}
