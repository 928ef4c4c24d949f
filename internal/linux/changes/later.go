// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/gitstate"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
)

// A later tells which paths of a root programs outside run or obey later, by the tables that name what is new
// after a run.
type later struct {
	root  string
	homes []string
	dir   string // of the last path
	below bool   // all that is in it
}

// maxLater is up to which byte all tables are asked about a path. In deeper directories only names count.
const maxLater = 256

// is reports whether a path relative to the root is run or obeyed.
func (l *later) is(at string) bool {
	if at == "." {
		return false
	}
	if len(at) > maxLater {
		for name := range strings.SplitSeq(at[maxLater:], "/") {
			if _, ok := grants.FindTool(name); ok {
				return true
			}
		}
		at = at[:maxLater]
	}
	if dir, _ := split(at); dir != l.dir {
		l.dir, l.below = dir, dir != "." && l.runs(dir)
	}
	return l.below || l.runs(at)
}

func (l *later) runs(at string) bool {
	abs := strings.TrimSuffix(l.root, "/") + "/" + at
	if _, _, ok := grants.Below(l.root, abs); ok || grants.LaterIn(l.homes, abs) != grants.NotLater {
		return true
	}
	return ofGit(at)
}

// ofGit reports whether a path is in the git directory of a work tree, and is none of the data in it.
func ofGit(at string) bool {
	_, name, ok := strings.Cut("/"+at+"/", "/.git/")
	if !ok {
		return false
	}
	name = strings.TrimSuffix(name, "/")
	if rest, ok := strings.CutPrefix(name, "worktrees/"); ok { // each is a git directory
		_, name, _ = strings.Cut(rest, "/")
	}
	if name == "" {
		return false
	}
	top, _, _ := strings.Cut(name, "/")
	known, ok := gitstate.LookUp(top)
	if ok && known.Use == gitstate.State {
		known, ok = gitstate.LookUp(name)
	}
	return !ok || known.Use == gitstate.Shut || known.Whole
}

// split returns the directory of a path relative to a root, and the name in it.
func split(at string) (dir, name string) {
	if i := strings.LastIndexByte(at, '/'); i >= 0 {
		return at[:i], at[i+1:]
	}
	return ".", at
}
