// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/gitstate"
)

// Protected returns what must not change while a command runs that may not write to
// the repository, in a stable order: .git, the git directories, and everything
// outside of them that git obeys, present or missing. That is the directories that
// core.hooksPath names, the files that configurations include, the configurations of
// the user and the system, the targets of the symbolic links among all these, and the
// missing .git of every submodule that is not populated. What lies in Dir and Common
// is not listed again.
//
// The error, if any, joins [*ConfigError] and [*IndexError]: git outside ends with
// such a file, but what it would obey once the file is fixed is not known. The paths
// are right as far as they go.
func (r *Repository) Protected(o Outside) ([]Path, error) {
	read := r.read(o)
	var l list
	l.symlinks(r.links, "the git directory")
	if !r.Bare {
		l.add(Path{Path: r.Link, IsDir: !r.Pointer, Why: "git directory"})
	}
	r.addGitDirs(&l)
	hooks, _ := r.hookPaths(read.said.hooks)
	for _, p := range slices.Concat(read.own.paths, read.said.paths, hooks) {
		if p.Symlink || !within(r.Dir, p.Path) && !within(r.Common, p.Path) {
			l.add(p)
		}
	}
	l.add(r.unpopulated(read.links)...)
	return l.paths, read.err
}

// A reading is what the files of a repository and its surroundings say.
type reading struct {
	own, said *configReader // what the repository names, and what the user and the system do
	links     []string      // gitlinks
	err       error
}

// read reads them.
func (r *Repository) read(o Outside) reading {
	read := reading{own: r.readOwn(o), said: o.read()}
	var err error
	read.links, err = r.gitlinks(nil, read.own.hash)
	_, hooks := r.hookPaths(read.said.hooks)
	read.err = errors.Join(slices.Concat(read.own.errs, read.said.errs, hooks, []error{err})...)
	return read
}

// addGitDirs adds the git directories and the links on the way to them.
func (r *Repository) addGitDirs(l *list) {
	l.add(Path{Path: r.Dir, Missing: r.DirMissing, IsDir: !r.DirMissing, Why: "git directory"})
	shared := "git directory that work trees share"
	l.add(Path{Path: r.Common, Missing: r.CommonMissing, IsDir: !r.CommonMissing, Why: shared})
	l.symlinks(r.links, "the git directory")
}

// closedDirs are the directories of a git directory that no git command needs to
// write for a commit, and that git obeys: attributes in info choose filters, and
// branches and remotes are the old forms of remotes in the configuration. Git does
// without each of them, and with an empty one.
var closedDirs = [...]string{"info", "modules", "branches", "remotes"}

// Writable reports whether a name below a git directory, without a slash in front, is
// open to a command that may write to the directory for commits, and to those of its submodules. It
// goes by names alone: [Repository.Shut] knows what a repository leads to.
func Writable(name string) bool {
	first, rest, deep := strings.Cut(name, "/")
	switch first {
	case "", commonName, gitdirName, worktreeName, configName, hooksName:
		return false
	case worktreesName:
		if _, inner, ok := strings.Cut(rest, "/"); deep && ok {
			return Writable(inner)
		}
	case "modules":
		_, inner, ok := strings.Cut(rest, "/")
		return ok && !slices.ContainsFunc(strings.Split(inner, "/"), func(part string) bool {
			return part != "modules" && (part == configName+".lock" || !Writable(part))
		})
	}
	return !slices.Contains(closedDirs[:], first)
}

// Shut returns what stays protected while a command runs that may write to Dir and
// Common, for commits, in a stable order. Nothing may be put at a missing path to protect it: git ends
// when it finds a directory in the place of some.
//
// The error is that of [Repository.Protected].
func (r *Repository) Shut(o Outside) ([]Path, error) {
	read := r.read(o)
	var l list
	l.symlinks(r.links, "the git directory")
	if r.Pointer {
		l.add(Path{Path: r.Link, Why: "git directory"})
	}
	if r.DirMissing || r.CommonMissing {
		r.addGitDirs(&l)
	}
	hooks, _ := r.hookPaths(read.said.hooks)
	l.add(slices.Concat(read.own.paths, read.said.paths, hooks)...)
	if !r.CommonMissing {
		for _, name := range closedDirs {
			l.follow(r.Common, name, "git "+name)
		}
	}
	if !r.DirMissing {
		shutDir(&l, r.Dir)
	}
	if r.Common != r.Dir {
		if !r.DirMissing {
			// The submodules of a linked work tree have their git directories here.
			l.follow(r.Dir, "modules", "git modules")
		}
		if !r.CommonMissing {
			shutDir(&l, r.Common) // git in the main work tree obeys these
		}
	}
	trees, err := r.allWorktrees()
	for _, dir := range trees {
		shutDir(&l, dir)
	}
	l.add(r.strangers()...)
	l.add(r.unpopulated(read.links)...)
	return l.paths, errors.Join(read.err, err)
}

// shutDir adds the files of a git directory that name other places.
func shutDir(l *list, dir string) {
	l.follow(dir, commonName, "name of the shared git directory")
	l.follow(dir, gitdirName, "name of the work tree")
	l.follow(dir, worktreeName, "git config of the work tree")
}

// allWorktrees returns the git directories of the linked work trees, sorted. The error is a
// [*LinkError] for those that cannot be listed.
func (r *Repository) allWorktrees() ([]string, error) {
	if r.CommonMissing {
		return nil, nil
	}
	var dirs []string
	top := join(r.Common, worktreesName)
	all, err := listed(top)
	for _, entry := range all {
		if !entry.Type().IsRegular() {
			dirs = append(dirs, join(top, entry.Name()))
		}
	}
	if err != nil {
		return dirs, &LinkError{Path: top, Why: "cannot be listed", Err: cause(err)}
	}
	return dirs, nil
}

// worktrees returns those that could be listed, for looks that follow one with Shut.
func (r *Repository) worktrees() []string {
	dirs, _ := r.allWorktrees()
	return dirs
}

// readOwn reads the repository's own configurations. All paths that these name are in
// the list then, with the files themselves, the directories of hooks, and the targets
// of links in the git directories.
func (r *Repository) readOwn(o Outside) *configReader {
	c := &configReader{home: o.Home, hash: sha1Size}
	// Without extensions.worktreeConfig git does not read config.worktree yet.
	if !r.DirMissing && exists(join(r.Dir, worktreeName)) {
		c.config(r.Dir, worktreeName, "git config of the work tree", 0)
	}
	if !r.CommonMissing {
		c.config(r.Common, configName, "git config", 0)
		c.hookDir(r.Common, hooksName, "git hooks")
		for _, name := range closedDirs {
			if isLink(join(r.Common, name)) {
				c.follow(r.Common, name, "git "+name)
			}
		}
	}
	paths, errs := r.hookPaths(c.hooks)
	c.add(paths...)
	c.errs = append(c.errs, errs...)
	return c
}

// hookPaths returns what settings name: directories of hooks, with the targets of links in them,
// files and programs; and the errors of what cannot be read.
func (r *Repository) hookPaths(settings []setting) ([]Path, []error) {
	var c configReader
	for _, s := range settings {
		// Hooks run at the top of the work tree, but in the git directory if something
		// was pushed there.
		c.setting(r.Work, s)
		if s.kind == setsDir && r.Dir != r.Work && !r.DirMissing && !filepath.IsAbs(s.path) {
			c.setting(r.Dir, s)
		}
	}
	return c.paths, c.errs
}

// unpopulated returns the missing .git of each gitlink in the index. Git enters a
// submodule as soon as there is one, and obeys its configuration.
func (r *Repository) unpopulated(links []string) []Path {
	var missing []Path
	for _, name := range links {
		if at, err := follow(r.Work, join(name, linkName)); err == nil && at.missing {
			missing = append(missing, Path{Path: at.real, Missing: true,
				Why: "git directory of the submodule " + name})
		}
	}
	return missing
}

// gitlinks returns the names of the gitlinks in the index of a work tree.
func (r *Repository) gitlinks(c *indexes, hash int) ([]string, error) {
	if r.Bare || r.DirMissing {
		return nil, nil
	}
	links, err := c.gitlinks(join(r.Dir, indexName), hash)
	if absent(err) {
		return nil, nil
	}
	return slices.DeleteFunc(links, func(name string) bool { return !gitstate.InsideName(name) }), err
}
