// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A policy whose root is denied shows listed paths and nothing else. Its root is
// a folder of ours in memory with a mount point for each of them, and the
// command is moved into it (pivot_root(2)) before anything is mounted there: of
// the host's tree it has the copies that were taken before, and no path and no
// descriptor leads to the rest.

// A Link is a symbolic link of the host's on the way to something that the
// command may see. Where a folder of ours stands around it, it is made anew.
type Link struct {
	Path string `json:"path"` // no symbolic link above it
	Dest string `json:"dest"`
}

// A Need is a place that a command cannot start without.
type Need struct {
	What   string `json:"what"` // "the program"
	Path   string `json:"path"` // no symbolic link above it; itself it may be one
	Folder bool   `json:"folder,omitempty"`
}

// rootShell is the name of the new root below the staging folder.
const rootShell = "root"

// minimal reports whether the command sees listed paths only.
func (n *native) minimal() bool { return n.req.Root == sandbox.LevelDeny }

// root adds the folder that becomes the command's root. The mount points of the
// system's own folders are in it whatever the policy lists.
func (n *native) root() {
	if !n.minimal() {
		return
	}
	own := []string{"/proc"}
	for _, s := range n.shells {
		own = append(own, s.at)
	}
	if t := n.req.Tmp; t != nil {
		own = append(own, t.At)
	}
	n.shells = append(n.shells, &shell{at: "/", name: rootShell, mode: 0o755})
	for _, at := range own {
		n.point(Spot{Path: at, Kind: KindFolder})
	}
}

// links gives every link to the folder of ours that stands around it. In the
// private /tmp none is made: what stands there belongs to the commands.
func (n *native) links() {
	for _, l := range n.req.Links {
		at := n.ours(l.Path)
		inWay := func(p Point) bool { return within(p.Path, l.Path) }
		for _, s := range n.shells {
			if s.at == at && (n.req.Tmp == nil || at != n.req.Tmp.At) && !slices.ContainsFunc(s.points, inWay) {
				s.links = append(s.links, l)
			}
		}
	}
}

// hides reports whether a rule denies a path. What no rule is about is not
// hidden by one, whatever the root.
func (n *native) hides(name string) bool {
	hidden := false
	for _, r := range n.req.Rules { // sorted, so the last one is the nearest
		if within(name, r.Path) {
			hidden = r.Level == sandbox.LevelDeny
		}
	}
	return hidden
}

// below is the part of a path that follows a folder above it.
func below(name, folder string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, folder), "/")
}

// shellLinks makes the links of a shell, and the folders that they lie in.
func (n *native) shellLinks(s *shell, made map[string]bool, mkdir func(string, uint32)) {
	done := map[string]bool{}
	for _, l := range s.links {
		name := below(l.Path, s.at)
		for i, c := range name {
			if up := name[:i]; c == '/' && !made[up] {
				made[up] = true
				mkdir(path.Join(s.name, up), 0o755)
			}
		}
		if !done[name] && !made[name] {
			done[name] = true
			n.add(launch.Step{Op: launch.OpSymlink, Path: staging + "/" + path.Join(s.name, name), Dest: l.Dest})
		}
	}
}

// enter moves into the new root. What can be made only while the host's tree is
// there is made before: copies of the masks, and a process file system, which
// the kernel gives only to whoever sees one.
func (n *native) enter(m masks) {
	if !n.minimal() {
		return
	}
	spare := func(folder bool) {
		from := m.file
		if folder {
			from = m.folder
		}
		t := n.newTree()
		n.add(launch.Step{Op: launch.OpClone, Tree: t, From: from})
		if folder {
			n.spareFolders = append(n.spareFolders, t)
		} else {
			n.spareFiles = append(n.spareFiles, t)
		}
	}
	for _, o := range n.mounts {
		if o.mask {
			spare(o.dir)
		}
	}
	for range n.host.ProcMasks {
		spare(false)
	}
	n.procTree = n.newTree()
	n.add(launch.Step{Op: launch.OpProc, Tree: n.procTree, Set: launch.AttrReadOnly})
	for _, s := range n.shells {
		if s.at == "/" {
			n.add(
				launch.Step{Op: launch.OpAttach, Tree: s.tree, Path: staging, Label: "a root for what is listed"},
				launch.Step{Op: launch.OpPivot, Path: staging, Label: "the host's tree is gone"})
		}
	}
}

// spareMask takes one of the copies that enter has made, or 0.
func (n *native) spareMask(folder bool) int {
	from := &n.spareFiles
	if folder {
		from = &n.spareFolders
	}
	if len(*from) == 0 {
		return 0
	}
	t := (*from)[0]
	*from = (*from)[1:]
	return t
}

// check returns a *sandbox.HiddenError for the first thing that the command
// needs and does not see.
func (n *native) check() error {
	if n.minimal() {
		for _, need := range n.req.Needs {
			if !n.sees(need) {
				return &sandbox.HiddenError{What: need.What, Path: need.Path}
			}
		}
	}
	for i, s := range n.req.Stdio {
		if s.Folder && s.Reopen != nil && !n.shows(s.Reopen.Path) {
			return &sandbox.HiddenError{What: "standard " + stdioNames[i] + ", the folder", Path: s.Reopen.Path}
		}
	}
	return nil
}

var stdioNames = [3]string{"input", "output", "error"}

// sees reports whether a need is met.
func (n *native) sees(need Need) bool {
	if n.shows(need.Path) || within(need.Path, "/proc") {
		return true
	}
	for _, s := range n.shells {
		if slices.ContainsFunc(s.links, func(l Link) bool { return l.Path == need.Path }) {
			return true
		}
		if need.Folder && slices.ContainsFunc(s.points, func(p Point) bool { return within(p.Path, need.Path) }) {
			return true
		}
	}
	t := n.req.Tmp
	return need.Folder && t != nil && within(need.Path, t.At) // the kernel says what is missing there
}

// shows reports whether the command sees the host's file at a path.
func (n *native) shows(name string) bool {
	t := n.req.Tmp
	if name == "/proc" || within(name, "/proc") || slices.ContainsFunc(n.shells, func(s *shell) bool { return s.at == name }) {
		return n.mountAt(name, true) != nil && name != "/proc"
	}
	shown := slices.ContainsFunc(n.shown, func(s Spot) bool { return within(name, s.Path) })
	if n.ours(name) == "" {
		return (n.req.LevelAt(name) != sandbox.LevelDeny || shown && !n.hides(name)) && (t == nil || name != t.At)
	}
	if shown {
		return !n.hides(name)
	}
	return n.mountAt(name, true) != nil && (t == nil || name != t.At)
}
