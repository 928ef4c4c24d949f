// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/gitstate"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// A finding is a fact about a git directory that a command could have made.
type finding struct {
	fact
	why string
}

// Why names and values are harmful.
const (
	whyName  = "git does not make a file of this name; other programs may obey it"
	whyIndex = "git checkout would write to a path outside of the work tree, or in .git, that it names"
)

// maxOrder is the size in bytes up to which a file with values is read.
const maxOrder = 16 << 20

// orders returns what git does not write in the git directories of a repository: names that are
// not git's own, and values without the form of git's. It also returns what it has looked at.
func (r *Repository) orders() (found []finding, looked []string) {
	for _, dir := range r.gitDirs() {
		o := orderWalk{dir: dir, shared: r.shared(dir)}
		o.list("")
		found, looked = append(found, o.found...), append(looked, o.looked...)
	}
	return found, looked
}

// An orderWalk looks at the names in one git directory.
type orderWalk struct {
	dir    string
	shared bool // other things than git's may lie at its top
	found  []finding
	looked []string // directories, and files with values
}

func (o *orderWalk) add(kind factKind, path, value, why string) {
	o.found = append(o.found, finding{newFact(kind, path, value), why})
}

// list looks at the names in the directory itself, or in one of state in it.
func (o *orderWalk) list(state string) {
	dir := o.dir
	if state != "" {
		dir = join(o.dir, state)
	}
	o.looked = append(o.looked, dir)
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) && state == "" && openUp(dir) {
		list, err = os.ReadDir(dir)
	}
	if err != nil && !absent(err) {
		o.add(isValue, dir, "unreadable", "it cannot be read, so what is in it is not known")
	}
	for _, entry := range list {
		name := entry.Name()
		if state != "" {
			name = state + "/" + name
		}
		o.entry(join(dir, entry.Name()), name, entry.Type())
	}
}

// entry looks at one name, given also relative to the git directory.
func (o *orderWalk) entry(path, name string, mode fs.FileMode) {
	k, ok := gitstate.LookUp(name)
	switch {
	case mode != 0 && mode != fs.ModeDir:
		o.add(isOdd, path, oddValue(path, mode), whyOdd)
	case !ok && o.shared && filepath.Dir(path) == o.dir:
	case !ok, mode == 0 && (k.Use == gitstate.Tree || k.Use == gitstate.State), mode == fs.ModeDir &&
		k.Use == gitstate.File && !strings.HasPrefix(filepath.Base(name), ".sallyport-"):
		st, _ := lstatStamp(path)
		value := "a directory"
		if mode == 0 {
			value = fmt.Sprint(st)
		}
		o.add(isName, path, value, whyName)
	case k.Use == gitstate.State:
		o.list(name)
	case k.Form != nil:
		o.values(path, k)
	}
}

// values looks at the values in a file.
func (o *orderWalk) values(path string, k gitstate.Name) {
	text, err := ReadFile(path, maxOrder)
	if absent(err) || errors.Is(err, safefile.ErrNotPlain) {
		return
	}
	o.looked = append(o.looked, path)
	harmful, why := path, k.Why
	if k.Whole {
		harmful = filepath.Dir(path)
	}
	bad := []string{"unreadable"} // what cannot be read counts as one value
	if err == nil {
		bad = k.Form(text)
	}
	for _, value := range bad {
		o.add(isValue, harmful, value, why)
	}
	if filepath.Dir(path) != o.dir && manyNames(path) {
		o.add(isValue, harmful, "hard link", "it has another name, by which it can be changed unnoticed")
	}
}

// outsideNames returns the names in the index of a git directory that lead out of the work tree.
func (r *Repository) outsideNames(c *indexes, hash int) []finding {
	var found []finding
	for _, dir := range r.gitDirs() {
		var broken *IndexError
		if _, err := c.gitlinks(join(dir, indexName), hash); errors.As(err, &broken) && broken.outside {
			found = append(found, finding{newFact(isValue, broken.Path, broken.Why), whyIndex})
		}
	}
	return found
}

// gitDirs returns the git directory of every work tree of the repository.
func (r *Repository) gitDirs() []string {
	dirs := append([]string{r.Dir, r.Common}, r.worktrees()...)
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// shared reports whether other things than git's own may lie at the top of a git directory: in
// one that is not below a .git, such as a bare repository, people keep work trees.
func (r *Repository) shared(dir string) bool {
	return dir == r.Common && !Inside(dir, join(join(dir, "of"), "another"))
}

// strangers returns what exists at the top of the git directories and is not git's own.
func (r *Repository) strangers() []Path {
	var l list
	for _, dir := range r.gitDirs() {
		if r.shared(dir) {
			continue
		}
		for _, entry := range entries(dir) {
			if _, ok := gitstate.LookUp(entry.Name()); !ok && (entry.IsDir() || entry.Type().IsRegular()) {
				l.add(Path{Path: join(dir, entry.Name()), IsDir: entry.IsDir(), Why: WhyStranger})
			}
		}
	}
	return l.paths
}

// WhyStranger is why [Repository.Shut] lists a path in a git directory that is not git's own.
const WhyStranger = "not written by git"
