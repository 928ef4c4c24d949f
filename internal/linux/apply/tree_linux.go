// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/changes"

	"golang.org/x/sys/unix"
)

// A node is a path with changes at or below it.
type node struct {
	name   string         // below up
	entry  *changes.Entry // of the change, or of the directory on the way
	up     *node          // nil for the root
	kids   []*node        // by name
	chosen bool           // it is a change that is applied or discarded
	done   bool           // it was
	now    string         // its name on the host, while it has another one there
	below  uint64         // of the host's directory that is removed: see closedBelow
	todo   phase          // of what is chosen at and below it
	judged bool           // closed is known: what Stage.Closed says of its path
	closed error
}

// A phase is one pass over the tree. Additions come first, deletions last, so that what was moved is always
// there.
type phase int

const (
	adds phase = 1 << iota
	modifies
	deletes
)

func phaseOf(e *changes.Entry) phase {
	switch {
	case e.Way:
		return 0
	case e.Kind == executor.ChangeAdded:
		return adds
	case e.Kind == executor.ChangeDeleted:
		return deletes
	}
	return modifies
}

// An inode is one of the stage.
type inode struct{ dev, ino uint64 }

func inodeOf(f *changes.Facts) inode { return inode{f.Dev, f.Ino} }

// errTree says that a change is in no directory of the stage.
var errTree = errors.New("the stage changed while it was read; try again")

// plant makes the trees of all changes.
func (w *work) plant(all, chosen []changes.Entry) error {
	type place struct {
		layer int
		path  string
	}
	nodes := make(map[place]*node, len(all))
	for i, l := range w.layers {
		l.top = &node{entry: &changes.Entry{Layer: i, Way: true,
			Change: executor.Change{Path: ".", Root: l.Root.Root},
			Old:    changes.Facts{Mode: unix.S_IFDIR}}}
	}
	for i := range all {
		e := &all[i]
		n := &node{entry: e}
		if e.Path == "." { // there are names that come before it
			n = w.layers[e.Layer].top
			n.entry = e
		} else { // a directory comes before what is in it
			n.up, n.name = w.layers[e.Layer].top, e.Path
			if dir, name, ok := cutLast(e.Path); ok {
				n.up, n.name = nodes[place{e.Layer, dir}], name
			}
			if n.up == nil {
				return errTree
			}
			n.up.kids = append(n.up.kids, n)
		}
		nodes[place{e.Layer, e.Path}] = n
		if !e.Way {
			w.entries = append(w.entries, n)
			w.total++
		}
	}
	for i := range chosen {
		e := &chosen[i]
		n := nodes[place{e.Layer, e.Path}]
		if e.Way || n == nil {
			continue
		}
		n.chosen = true
		for at := n.up; at != nil && n.entry.Kind != executor.ChangeDeleted; at = at.up {
			at.chosen = at.chosen || !at.entry.Way && !isDir(at.entry.Old.Mode) // it has to be made
		}
	}
	return nil
}

// cutLast cuts a path before its last name.
func cutLast(path string) (dir, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// plan notes what is to be done at and below a node.
func (n *node) plan() phase {
	n.todo = 0
	if n.chosen {
		n.todo = phaseOf(n.entry)
	}
	for _, k := range n.kids {
		n.todo |= k.plan()
	}
	return n.todo
}

// each calls f for a node and all below it.
func (n *node) each(f func(*node)) {
	f(n)
	for _, k := range n.kids {
		k.each(f)
	}
}

// whole reports whether there are changes at or below a node, and all are done.
func (n *node) whole() (all, some bool) {
	all = n.entry.Way || n.done
	some = n.done
	for _, k := range n.kids {
		a, s := k.whole()
		all, some = all && a, some || s
	}
	return all, some
}

func isDir(mode uint32) bool { return mode&unix.S_IFMT == unix.S_IFDIR }
