// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reach

import (
	"path/filepath"
	"sync"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Reach knows what commands can change. Its methods may be called from several goroutines at
// once; they read directories and the beginnings of programs, and never wait. For the nil Reach
// everything is in reach.
type Reach struct {
	fixed func() []string // what no run can write to, see [userdirs.Usual]

	ready  func()         // sets the following
	policy sandbox.Policy // of all that may be written
	roots  []string       // its writable places, without symbolic links
	real   []string       // fixed without symbolic links

	mounts func() table

	mu    sync.Mutex
	known map[string]error // by path
}

// A table finds other paths of a file. [hostfacts.MountTable] is one.
type table interface {
	Aliases(name string) ([]string, bool)
}

// entries returns what is in an area, as entries with absolute paths. What a pattern denies is
// left out, so that it counts as in reach.
func (a *Area) entries() []sandbox.Entry {
	p := a.Policy
	if p.Mode() != sandbox.Managed || p.Unrestricted() {
		p = sandbox.ReadOnly()
	}
	tmp := sandbox.PathEntry("/tmp", sandbox.LevelRead) // the stricter one counts
	places := sandbox.Places{Dir: a.Workspace}
	if a.HostTmp {
		places.SlashTmp = "/tmp"
	}
	var out []sandbox.Entry
	for _, e := range p.Bind(places).Entries() {
		name, ok := e.Place.Absolute()
		if ok && e.Check() == nil && (a.HostTmp || name != "/tmp") {
			out = append(out, e)
		}
	}
	if !a.HostTmp {
		out = append(out, tmp)
	}
	for _, dir := range append([]string{a.Workspace}, a.Writable...) {
		if filepath.IsAbs(dir) {
			out = append(out, sandbox.PathEntry(filepath.Clean(dir), sandbox.LevelWrite))
		}
	}
	return out
}
