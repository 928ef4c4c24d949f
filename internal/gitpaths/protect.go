// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"errors"
	"slices"
	"strings"
)

// Protected returns what must not change while a command runs that may not touch
// the repository, in a stable order: .git, the git folders, and everything outside
// of them that git obeys, present or missing. That is the folders that
// core.hooksPath names, the files that configurations include, the configurations
// of the user and the system, what the symbolic links among all these lead to, and
// the missing .git of every submodule that is not populated. What lies in Dir and
// Common is not listed again.
//
// The error, if any, joins [*ConfigError] and [*IndexError]: git outside ends with
// such a file, but what it would obey once the file is mended is not known. The
// paths are right as far as they go.
func (r *Repository) Protected(o Outside) ([]Path, error) {
	c := r.readConfigs(o)
	r.hookFolders(c)
	var l list
	if !r.Bare {
		l.add(Path{Path: r.Link, Folder: !r.Pointer, Why: "git folder"})
	}
	r.folders(&l)
	r.details(c)
	for _, p := range c.paths {
		if !within(r.Dir, p.Path) && !within(r.Common, p.Path) || p.Symlink {
			l.add(p)
		}
	}
	missing, err := r.unpopulated(o.Cache, c.hash)
	for _, p := range missing {
		l.add(p)
	}
	return l.paths, errors.Join(append(c.errs, err)...)
}

// folders adds the git folders and the links on the way to them.
func (r *Repository) folders(l *list) {
	l.add(Path{Path: r.Dir, Missing: r.DirMissing, Folder: true, Why: "git folder"})
	l.add(Path{Path: r.Common, Missing: r.CommonMissing, Folder: true, Why: "git folder that work trees share"})
	l.symlinks(r.links, "the git folder")
}

// details adds what symbolic links in the git folders lead to.
func (r *Repository) details(c *configReader) {
	if r.CommonMissing {
		return
	}
	for _, name := range closedFolders {
		if path := join(r.Common, name); isLink(path) {
			c.follow(r.Common, name, "git "+name, true)
		}
	}
}

// closedFolders are the folders of a git folder that no git command needs to write
// to for a commit, and that git obeys: attributes in info choose filters, and
// branches and remotes are the old forms of remotes in the configuration. Git does
// without each of them, and with an empty one.
var closedFolders = [...]string{"info", "modules", "branches", "remotes"}

// Writable reports whether a name below a git folder, without a slash in front, is
// open to a command that may write to the folder for commits. It goes by names alone:
// [Repository.Shut] knows what a repository leads to.
func Writable(name string) bool {
	first, rest, deep := strings.Cut(name, "/")
	switch first {
	case "", commonName, gitdirName, worktreeName, configName, "hooks":
		return false
	case worktreesName:
		if _, inner, ok := strings.Cut(rest, "/"); deep && ok {
			return Writable(inner)
		}
	}
	return !slices.Contains(closedFolders[:], first)
}

// Shut returns what stays closed while a command runs that may write to Dir and
// Common, for commits, in a stable order. Of what is missing, an empty folder can
// hold the place where Folder is true; the others must be watched, because git ends
// when it finds a folder in their place.
//
// The error is that of [Repository.Protected].
func (r *Repository) Shut(o Outside) ([]Path, error) {
	c := r.readConfigs(o)
	r.hookFolders(c)
	var l list
	if r.Pointer {
		l.add(Path{Path: r.Link, Why: "git folder"})
	}
	if r.DirMissing || r.CommonMissing {
		r.folders(&l)
	}
	l.symlinks(r.links, "the git folder")
	for _, p := range c.paths {
		l.add(p)
	}
	if !r.CommonMissing {
		for _, name := range closedFolders {
			l.follow(r.Common, name, "git "+name, true)
		}
	}
	if !r.DirMissing {
		r.shutDir(&l)
	}
	r.shutWorktrees(&l)
	missing, err := r.unpopulated(o.Cache, c.hash)
	for _, p := range missing {
		l.add(p)
	}
	return l.paths, errors.Join(append(c.errs, err)...)
}

// shutDir adds the files of Dir that name other places.
func (r *Repository) shutDir(l *list) {
	l.follow(r.Dir, commonName, "name of the shared git folder", false)
	l.follow(r.Dir, gitdirName, "name of the work tree", false)
	l.follow(r.Dir, worktreeName, "git config of the work tree", false)
	if r.Common != r.Dir {
		// The submodules of a linked work tree have their git folders here.
		// With an empty folder there "git worktree remove" would take the tree for one
		// with submodules.
		l.follow(r.Dir, "modules", "git modules", false)
		if !r.CommonMissing {
			// Git in the main work tree would obey these.
			l.follow(r.Common, commonName, "name of the shared git folder", false)
			l.follow(r.Common, worktreeName, "git config of the work tree", false)
		}
	}
}

// shutWorktrees adds the same files of the linked work trees that exist.
func (r *Repository) shutWorktrees(l *list) {
	if r.CommonMissing {
		return
	}
	folder := join(r.Common, worktreesName)
	for _, name := range worktrees(folder) {
		dir := join(folder, name)
		if dir == r.Dir {
			continue
		}
		l.follow(dir, commonName, "name of the shared git folder", false)
		l.follow(dir, gitdirName, "name of the work tree", false)
		l.follow(dir, worktreeName, "git config of the work tree", false)
	}
}

// worktrees returns the names of the folders in a folder named worktrees, sorted.
func worktrees(folder string) []string {
	var names []string
	// One that cannot be read has no work trees for git either.
	_ = readFolder(folder, func(name []byte, kind entryKind) bool {
		if kind != kindFile {
			names = append(names, string(name))
		}
		return true
	})
	slices.Sort(names)
	return names
}

// unpopulated returns the missing .git of each gitlink in the index. Git enters a
// submodule as soon as there is one, and obeys its configuration. An empty folder
// in its place makes git status fail, so none of them can be held.
func (r *Repository) unpopulated(c *Cache, hash int) ([]Path, error) {
	links, err := r.gitlinks(c, hash)
	var missing []Path
	for _, name := range links {
		at, err := follow(r.Work, join(name, linkName))
		if err == nil && at.missing {
			missing = append(missing, Path{Path: at.real, Missing: true, Why: "git folder of the submodule " + name})
		}
	}
	return missing, err
}

// Submodules returns the folders of the submodules in the index that are populated,
// sorted: git outside enters each of them, and [Open] tells what it finds there.
// A nil Cache reads the index every time.
func (r *Repository) Submodules(o Outside) ([]string, error) {
	links, err := r.gitlinks(o.Cache, r.hashSize(o))
	var populated []string
	for _, name := range links {
		at, err := follow(r.Work, name)
		if err == nil && !at.missing && stands(join(at.real, linkName)) {
			populated = append(populated, at.real)
		}
	}
	return populated, err
}

// hashSize returns how many bytes the names of objects have.
func (r *Repository) hashSize(o Outside) int {
	o.Configs, o.System = nil, nil
	return r.readConfigs(o).hash
}

// gitlinks returns the names of the gitlinks in the index of a work tree.
func (r *Repository) gitlinks(c *Cache, hash int) ([]string, error) {
	if r.Bare || r.DirMissing {
		return nil, nil
	}
	links, err := c.Gitlinks(join(r.Dir, indexName), hash)
	if absent(err) {
		return nil, nil
	}
	return slices.DeleteFunc(links, func(name string) bool { return !insideName(name) }), err
}

// insideName reports whether git would use the name from an index at all: it stays
// in the work tree and out of .git (verify_path in git's read-cache.c).
func insideName(name string) bool {
	if name == "" || name[0] == '/' {
		return false
	}
	for rest := name; rest != ""; {
		var element string
		element, rest = cutElement(rest)
		if element == "." || element == ".." || element == linkName {
			return false
		}
	}
	return true
}
