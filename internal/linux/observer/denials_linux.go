// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"time"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// denials collects what was denied. It is not safe for concurrent use.
type denials struct {
	list    []sandbox.Denial
	index   map[target]int
	omitted int
}

// A target is what makes two denials the same.
type target struct {
	op               sandbox.Op
	path, addr, call string
}

// crossMount is the error of a link or rename to another mount.
const crossMount = "EXDEV"

// add adds a denial and returns it, or counts one that is known or finds no room and
// returns nil. EXDEV, the error of a link or rename to another mount, says less than that
// of the wall, and is replaced by it.
func (d *denials) add(n sandbox.Denial) *sandbox.Denial {
	key := target{n.Op, n.Path, n.Addr, n.Call}
	if i, ok := d.index[key]; ok {
		known := &d.list[i]
		known.Count++
		known.Time = time.Now()
		known.Unlinks = known.Unlinks || n.Unlinks
		if known.Errno == crossMount {
			known.Errno = n.Errno
		}
		return nil
	}
	if len(d.list) >= MaxDenials {
		d.omitted++
		return nil
	}
	if d.index == nil {
		d.index = make(map[target]int)
	}
	d.index[key] = len(d.list)
	n.Count, n.Source, n.Time = 1, sandbox.Notified, time.Now()
	d.list = append(d.list, n)
	return &d.list[len(d.list)-1]
}

// crossed reports whether the last denial of a write to a path was for another mount.
func (d *denials) crossed(path string) bool {
	i, ok := d.index[target{op: sandbox.Write, path: path}]
	return ok && d.list[i].Errno == crossMount
}
