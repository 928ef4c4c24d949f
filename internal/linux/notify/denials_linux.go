// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// MaxDenials is how many different denials, and files, are kept. Further ones are counted.
const MaxDenials = 200

// Denials collects what was denied. It is not safe for concurrent use.
type Denials struct {
	List    []sandbox.Denial
	index   map[target]int
	Omitted int
}

// A target is what makes two denials the same.
type target struct {
	op               sandbox.Op
	path, addr, call string
}

// crossMount is the error of a link or rename to another mount.
const crossMount = "EXDEV"

// Add adds a denial and returns it, or counts one that is known or finds no room and
// returns nil. EXDEV, the error of a link or rename to another mount, says less than that
// of the wall, and is replaced by it.
func (d *Denials) Add(n sandbox.Denial) *sandbox.Denial {
	key := target{n.Op, n.Path, n.Addr, n.Call}
	if i, ok := d.index[key]; ok {
		known := &d.List[i]
		known.Count++
		known.Time = time.Now()
		known.Unlinks = known.Unlinks || n.Unlinks
		if known.Errno == crossMount {
			known.Errno = n.Errno
		}
		return nil
	}
	if len(d.List) >= MaxDenials {
		d.Omitted++
		return nil
	}
	if d.index == nil {
		d.index = make(map[target]int)
	}
	d.index[key] = len(d.List)
	n.Count, n.Source, n.Time = 1, sandbox.Notified, time.Now()
	d.List = append(d.List, n)
	return &d.List[len(d.List)-1]
}

// Crossed reports whether the last denial of a write to a path was for another mount.
func (d *Denials) Crossed(path string) bool {
	i, ok := d.index[target{op: sandbox.Write, path: path}]
	return ok && d.List[i].Errno == crossMount
}

// HardLinks collects what was reported. It is not safe for concurrent use.
type HardLinks struct {
	List    []executor.HardLink
	known   map[string]bool
	Omitted int
}

// Add adds a file with so many names, unless it is known.
func (h *HardLinks) Add(path string, links uint32) {
	switch {
	case h.known[path]:
		return
	case len(h.List) >= MaxDenials:
		h.Omitted++
		return
	case h.known == nil:
		h.known = make(map[string]bool)
	}
	h.known[path] = true
	h.List = append(h.List, executor.HardLink{Path: path, Links: links})
}
