// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
)

// A model is a small machine that performs the mount steps of a script on paper.
// It follows the kernel's rules as far as they decide what a command sees: the
// newest mount at or above a path is what counts, and a copy keeps the
// attributes that its source had when it was taken.
type model struct {
	trees  map[int]view
	mounts []view          // attached, in order
	files  map[string]bool // what was made in the staging file system; true for directories
	ro     bool            // the host's tree is sealed
	full   bool            // the staging file system is
	// pivoted says that the host's tree is out of reach.
	pivoted bool
}

// A view is a tree, and where it stands once it is attached.
type view struct {
	at        string
	source    string // the path that it shows, in the host's tree or in ours
	host      bool   // the host's files
	proc      bool   // made by the kernel, always with what is needed in it
	ro        bool
	attrs     uint64
	directory bool
	over      bool // what is written does not reach the source
}

// top is the newest mount over a path, or nil for the host's tree.
func (m *model) top(name string) *view {
	for i := len(m.mounts) - 1; i >= 0; i-- {
		if within(name, m.mounts[i].at) {
			return &m.mounts[i]
		}
	}
	return nil
}

// look resolves a path to what is seen there.
func (m *model) look(name string) view {
	v := m.top(name)
	if v == nil {
		return view{source: name, host: !m.pivoted, ro: m.ro, directory: true}
	}
	seen := *v
	seen.source = path.Join(v.source, strings.TrimPrefix(name, v.at))
	return seen
}

// run performs a script up to start-command.
func run(s *launch.Script, points []Point) (*model, error) {
	m := &model{trees: map[int]view{}, files: map[string]bool{}}
	for i, st := range s.Steps {
		if st.Op == launch.OpStartCommand {
			return m, nil
		}
		if err := m.step(st, points); err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i+1, st, err)
		}
	}
	return nil, fmt.Errorf("the script starts no command")
}

func (m *model) step(s launch.Step, points []Point) error {
	if _, ok := m.trees[s.Tree]; ok && s.Op != launch.OpSetTree && s.Op != launch.OpAttach &&
		s.Op != launch.OpSetting {
		return fmt.Errorf("the tree is made twice")
	}
	switch s.Op {
	case launch.OpOpen:
		m.trees[s.Tree] = m.look(s.Path)
	case launch.OpClone:
		if m.pivoted && !s.Own {
			return fmt.Errorf("a copy of what is gone")
		}
		if s.Path == "" {
			m.trees[s.Tree] = m.trees[s.From]
			return nil
		}
		m.trees[s.Tree] = m.look(s.Path)
	case launch.OpSetTree:
		v := m.trees[s.Tree]
		v.ro, v.attrs = v.ro || s.Set&launch.AttrReadOnly != 0, v.attrs|s.Set
		m.trees[s.Tree] = v
	case launch.OpSetMount:
		return m.set(s)
	case launch.OpTmpfs:
		m.trees[s.Tree] = view{source: "staging:"}
		m.files["staging:"] = true
	case launch.OpProc, launch.OpDevpts:
		m.trees[s.Tree] = view{source: s.Op.String() + ":", proc: true, ro: s.Set&launch.AttrReadOnly != 0}
	case launch.OpOverlay:
		if m.ro || len(m.mounts) > 0 {
			return fmt.Errorf("made when nothing can be written any more")
		}
		m.trees[s.Tree] = view{source: s.Path, host: true, over: true, attrs: s.Set}
	case launch.OpMkdir, launch.OpMkfile:
		seen := m.look(s.Path)
		if seen.host || m.full {
			return fmt.Errorf("would be made in %v", seen)
		}
		if directory, ok := m.files[path.Dir(seen.source)]; !ok || !directory {
			return fmt.Errorf("nothing to make it in")
		}
		if _, ok := m.files[seen.source]; ok {
			return fmt.Errorf("exists")
		}
		m.files[seen.source] = s.Op == launch.OpMkdir
	case launch.OpSymlink:
		seen := m.look(s.Path)
		directory, ok := m.files[path.Dir(seen.source)]
		if _, exists := m.files[seen.source]; seen.host || m.full || exists || !ok || !directory {
			return fmt.Errorf("would be made in %v", seen)
		}
		m.files[seen.source] = false
	case launch.OpChmod:
		if seen := m.look(s.Path); seen.host || m.full {
			return fmt.Errorf("would change %v", seen)
		}
	case launch.OpPivot:
		v := m.top(s.Path)
		if v == nil || v.at != s.Path || v.host {
			return fmt.Errorf("no root of ours stands there")
		}
		root := *v
		root.at = "/"
		m.mounts, m.pivoted = []view{root}, true
	case launch.OpAttach:
		return m.attach(s, points)
	case launch.OpPin:
		v := m.look(s.Path)
		if !v.host || v.ro || v.source != s.Path ||
			v.attrs&(launch.AttrNoSuid|launch.AttrNoDev) != launch.AttrNoSuid|launch.AttrNoDev {
			return fmt.Errorf("a pin in %v", v)
		}
		v.at = s.Path
		m.mounts = append(m.mounts, v)
	}
	return nil
}

// set changes the mounts at and below a path.
func (m *model) set(s launch.Step) error {
	if s.Path == "/" && s.Recursive {
		m.ro = m.ro || s.Set&launch.AttrReadOnly != 0
		for i := range m.mounts {
			m.mounts[i].ro = m.mounts[i].ro || s.Set&launch.AttrReadOnly != 0
		}
		return nil
	}
	if s.Path == staging && m.top(staging) == nil {
		return nil // the host's /dev, before anything stands over it
	}
	v := m.top(s.Path)
	if v == nil || v.at != s.Path {
		return fmt.Errorf("not a mount")
	}
	v.ro = (v.ro || s.Set&launch.AttrReadOnly != 0) && s.Clear&launch.AttrReadOnly == 0
	if v.source == "staging:" {
		m.full = v.ro
	}
	return nil
}

// attach puts a tree in its place, which must exist.
func (m *model) attach(s launch.Step, points []Point) error {
	v, ok := m.trees[s.Tree]
	if !ok {
		return fmt.Errorf("no such tree")
	}
	delete(m.trees, s.Tree)
	under := m.look(s.Path)
	switch {
	case under.proc:
	case !under.host:
		if _, ok := m.files[under.source]; !ok {
			return fmt.Errorf("no mount point %s", under.source)
		}
	case under.source != s.Path && !hasPoint(points, under.source):
		return fmt.Errorf("no mount point %s was asked for", under.source)
	}
	if under.host && s.Own {
		return fmt.Errorf("the host's %s counts as ours", under.source)
	}
	v.at = s.Path
	m.mounts = append(m.mounts, v)
	return nil
}

// hasPoint reports whether a directory or file is made before the launch, or lies
// on the way to one that is.
func hasPoint(points []Point, name string) bool {
	for _, p := range points {
		if within(path.Join(p.Below, p.Path), name) {
			return true
		}
	}
	return false
}
