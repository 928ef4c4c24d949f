// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

const (
	// maxNew is how many new repositories are listed.
	maxNew = 100
	// cheapSearch is how many names and directories the first search of a run may have looked
	// at for a second one at its end, when nothing has observed the command.
	cheapSearch = 128
	// maxPlaces is how many places are looked at, so that a command cannot delay its end; where
	// there are more, the roots are searched, which is bounded.
	maxPlaces = 4096
)

// A searched root is what the search for nested repositories found in it.
type searched struct {
	root string
	hung []string // what was not looked at
	git.Found
}

// A seen is what there was of files that other programs run or obey later, and of
// repositories, when the command started. It outlives that look.
type seen struct {
	names   []grants.SeenTool
	tops    []string // the directories that they are in
	roots   []searched
	granted []string        // the named grants
	own     []ownRepository // among them, those that commands made
	scans   *Scans          // remembers such repositories; may be nil
}

// Made is what the observer has seen of the making of repositories.
type Made struct {
	// Places are paths named .git, and directories that may be bare ones. They may be gone, or be none.
	Places []string
	IDs    []FileID // what the command has made there
	// Committed are repositories of earlier runs in which the command has written what the grant opens.
	Committed []FileID
	Renamed   bool // a directory may have been renamed
}

// New returns the files that other programs run or obey later, and the repositories, that were
// not there when the command started. Made is nil if nothing observed the command. Call it when
// the process tree has ended, after Finish.
func (p *Protection) New(made *Made) []executor.New {
	if p == nil {
		return nil
	}
	var out []executor.New
	names := grants.LookAgain(p.seen.names, p.seen.tops)
	for i := range names {
		at := &names[i]
		files, more := at.New()
		for _, name := range files {
			out = append(out, p.seen.entry(name, at.Grant))
		}
		if more > 0 {
			out[len(out)-1].More = more
		}
	}
	repositories := p.seen.repositories(made)
	p.seen.keep(repositories, made)
	for _, name := range repositories[:min(len(repositories), maxNew)] {
		out = append(out, p.seen.entry(name, GrantGit))
	}
	if more := len(repositories) - maxNew; more > 0 {
		out[len(out)-1].More = more
	}
	return out
}

// Writing is [executor.Writing] by what was planned.
func (p *Protection) Writing(files []string) (made func() []executor.New) {
	if p == nil {
		return func() []executor.New { return nil }
	}
	var places []string
	for _, name := range files {
		for ; name != "/" && !slices.Contains(places, name); name = filepath.Dir(name) {
			if !isRepository(name) {
				places = append(places, name)
			}
		}
	}
	return func() []executor.New {
		return slices.DeleteFunc(p.New(&Made{Places: places}), func(n executor.New) bool {
			below := func(name string) bool { return hostfacts.Below(name, n.Path) }
			return !slices.ContainsFunc(files, below)
		})
	}
}

// isRepository reports whether a path is the .git of a repository, or a bare one.
func isRepository(name string) bool {
	_, err := os.Lstat(name)
	return !missing(err) && (filepath.Base(name) == ".git" || git.IsBare(name)) // what is closed is there
}

func (s *seen) entry(path, grant string) executor.New {
	return executor.New{Path: path, Grant: sandbox.Grant{Name: grant}.String(),
		Granted: slices.Contains(s.granted, grant)}
}

// repositories returns the repositories that are new: those that the observer saw being made.
// Only where one of these may have been moved, and where nothing was observed and the roots are
// small, they are searched again.
func (s *seen) repositories(made *Made) []string {
	search := false
	if made == nil {
		search, made = !slices.ContainsFunc(s.roots,
			func(r searched) bool { return r.Scanned > cheapSearch }), &Made{}
	}
	search = search || len(made.Places) > maxPlaces
	out, gone := s.changed(made)
	search = search || gone && made.Renamed
	for _, name := range made.Places[:min(len(made.Places), maxPlaces)] {
		if _, err := os.Lstat(name); missing(err) {
			search = search || made.Renamed
		} else if isRepository(name) && !s.known(name) {
			out = append(out, name)
		}
	}
	if search {
		out = append(out, s.search()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// known reports whether a repository was found when the command started, and is the same where
// it could be replaced.
func (s *seen) known(name string) bool {
	id, _ := identify(name)
	if i := slices.IndexFunc(s.own, func(o ownRepository) bool { return o.id == id }); i >= 0 {
		return s.own[i].at == name
	}
	if filepath.Base(name) == ".git" {
		name = filepath.Dir(name)
	}
	if slices.ContainsFunc(s.own, func(o ownRepository) bool { return o.work == name }) {
		return false
	}
	return slices.ContainsFunc(s.roots,
		func(r searched) bool { return slices.Contains(r.Repositories, name) })
}

// search searches the roots once more, within the bounds of the first search. Where that one
// did not reach everything, what is found now may be old and is left out.
func (s *seen) search() []string {
	var out []string
	for _, r := range s.roots {
		if !r.Complete {
			continue
		}
		for _, work := range git.Scan(r.root, git.Limit{Skip: r.hung}).Repositories {
			name := work
			if _, err := os.Lstat(filepath.Join(work, ".git")); err == nil {
				name = filepath.Join(work, ".git")
			}
			if !s.known(name) {
				out = append(out, name)
			}
		}
	}
	return out
}
