// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A Snapshot is what git obeyed in a work tree before a command that may write to its
// git directories. [Take] makes one; the zero value is not usable.
type Snapshot struct {
	work  string      // resolved
	repo  *Repository // nil if there was none
	cache *Cache
	hash  int // bytes of an object name
	files []seenFile
	trees map[string]bool   // git directories of linked work trees
	links map[string]bool   // .git of populated submodules
	words map[order]bool    // what leads git to a program or a path
	odd   map[string]string // as Repository.odd
	refs  bool              // git makes symbolic links for symbolic refs
}

// A seenFile is a file with what it was.
type seenFile struct {
	path, why string
	present   bool
	stamp     stamp
}

// Take looks at the work tree work, whose repository is r: what [Open] has returned
// for it, nil if there is none. What is in directories that closed reports cannot be
// written to; it may be nil. With an [*IndexError] the snapshot is usable nevertheless,
// with any other error it is nil.
func Take(work string, r *Repository, o Outside, closed func(path string) bool) (*Snapshot, error) {
	s := &Snapshot{work: work, repo: r, cache: o.Cache}
	if r == nil {
		at, err := followAbs(work)
		s.work = at.real
		return s, err
	}
	own := r.readOwn(o)
	s.hash, s.refs = own.hash, own.linkRefs || o.read().linkRefs
	var err error
	if s.odd, err = r.odd(closed); err != nil {
		return nil, err
	}
	s.files = r.obeyed()
	for i := range s.files {
		f := &s.files[i]
		st, err := lstatStamp(f.path)
		f.present, f.stamp = err == nil || !absent(err), st
	}
	s.trees, s.words, s.links = map[string]bool{}, map[order]bool{}, map[string]bool{}
	for _, dir := range r.worktrees() {
		s.trees[dir] = true
	}
	for _, o := range r.orders(s.cache, s.hash) {
		s.words[o] = true
	}
	links, err := r.populated(s.cache, s.hash)
	for _, link := range links {
		s.links[link] = true
	}
	return s, err
}

// populated returns the .git of each gitlink in the index that has one.
func (r *Repository) populated(c *Cache, hash int) ([]string, error) {
	links, err := r.gitlinks(c, hash)
	var present []string
	for _, name := range links {
		if at, followErr := follow(r.Work, join(name, linkName)); followErr == nil && !at.missing {
			present = append(present, at.real)
		}
	}
	return present, err
}

// obeyed returns the files that git obeys in the directories that a command could
// write to.
func (r *Repository) obeyed() []seenFile {
	var files []seenFile
	for _, dir := range slices.Compact([]string{r.Dir, r.Common}) {
		files = append(files,
			seenFile{path: join(dir, commonName), why: "git would take its configuration and hooks from the directory that it names"},
			seenFile{path: join(dir, worktreeName), why: "git would obey it as a configuration"},
			seenFile{path: join(dir, gitdirName), why: "git would take it for the name of a work tree"})
	}
	return append(files,
		seenFile{path: join(r.Common, configName), why: "git obeys it as its configuration"},
		seenFile{path: join(r.Common, hooksName), why: "git runs what is in it"},
		seenFile{path: join(join(r.Common, "info"), "attributes"), why: "git runs the filters that it chooses"})
}

// Check returns what git outside would obey and did not when the snapshot was taken,
// in a stable order. Moving every returned path elsewhere makes the work tree harmless
// again; Why tells what it would have done. Check does not repeat what
// [Repository.Protected] and [Repository.Shut] list, except for files in the git
// directories that changed nevertheless.
//
// Closed is as for [Take]. The error is an [*IndexError], then there may be submodules
// that it did not see, or that of a git directory that cannot be looked at.
func (s *Snapshot) Check(closed func(path string) bool) ([]Path, error) {
	if s.repo == nil {
		return s.checkEmpty(), nil
	}
	var l list
	for _, f := range s.files {
		st, err := lstatStamp(f.path)
		switch present := err == nil || !absent(err); {
		case present && !f.present:
			l.add(planted(f.path, "it appeared; "+f.why))
		case present && (st.inode != f.stamp.inode || st.size != f.stamp.size || st.modified != f.stamp.modified):
			l.add(planted(f.path, "it changed; "+f.why))
		}
	}
	for _, dir := range s.repo.worktrees() {
		if !s.trees[dir] { // or Shut protects its files
			checkLinked(&l, dir)
		}
	}
	for _, o := range s.repo.orders(s.cache, s.hash) {
		if !s.words[o] {
			l.add(planted(o.path, o.why))
		}
	}
	links, err := s.repo.populated(s.cache, s.hash)
	for _, link := range links {
		if !s.links[link] {
			l.add(planted(link, "git status would run git in this submodule and obey its configuration"))
		}
	}
	var broken *IndexError
	if errors.As(err, &broken) && broken.outside {
		err = nil // it is in the list
	}
	err = errors.Join(err, s.checkOdd(&l, closed))
	return l.paths, err
}

// checkOdd looks for what is neither a file nor a directory. Git outside would write
// and remove files through a symbolic link.
func (s *Snapshot) checkOdd(l *list, closed func(path string) bool) error {
	now, err := s.repo.odd(closed)
	for _, path := range slices.Sorted(maps.Keys(now)) {
		what := now[path]
		if s.odd[path] != what && !(s.refs && s.repo.isRef(path, what)) {
			l.add(planted(path, "it appeared and is neither a file nor a directory; git would read, write or remove something else through it"))
		}
	}
	return err
}

// isRef reports whether a symbolic link is a symbolic ref, as git makes them with
// core.preferSymlinkRefs.
func (r *Repository) isRef(path, what string) bool {
	target, ok := strings.CutPrefix(what, oddLink+"refs/")
	ref := path == join(r.Dir, headName) || path == join(r.Common, headName) || within(join(r.Common, "refs"), path)
	return ok && ref && insideName(target)
}

// checkEmpty looks at a directory that was no repository.
func (s *Snapshot) checkEmpty() []Path {
	var l list
	if link := join(s.work, linkName); exists(link) {
		l.add(planted(link, "it appeared; git would take the directory for a repository and obey its configuration"))
	}
	if bare, err := openBare(s.work); bare != nil || err != nil {
		l.add(planted(join(s.work, headName), "it appeared; git would take the directory for a bare repository and obey its configuration"))
	}
	return l.paths
}

// checkLinked looks at the git directory of a new linked work tree. What "git worktree
// add" writes names the shared git directory by "../..", and without
// extensions.worktreeConfig there is no configuration.
func checkLinked(l *list, dir string) {
	text, err := ReadFile(join(dir, commonName), pointerLimit)
	if err != nil && !absent(err) || err == nil && string(bytes.TrimRight(text, "\r\n")) != "../.." || isLink(dir) {
		l.add(planted(dir, "git in that work tree would take its configuration and hooks from elsewhere"))
		return
	}
	if !pointsBack(dir) {
		l.add(planted(dir, "git worktree repair would write to the .git that it names, which does not name it"))
		return
	}
	if path := join(dir, worktreeName); exists(path) {
		l.add(planted(path, "git in that work tree would obey it as a configuration"))
	}
	if path := join(dir, "modules"); exists(path) {
		l.add(planted(path, "git in that work tree would obey the configurations in it"))
	}
}

// pointsBack reports whether the .git that the git directory of a linked work tree names
// is a file that names the directory, or lies in a work tree that does not exist.
func pointsBack(dir string) bool {
	text, err := ReadFile(join(dir, gitdirName), pointerLimit)
	if absent(err) {
		return true // git does not take it for a work tree
	}
	target, why := parsePointer(text, "")
	if err != nil || why != "" {
		return false
	}
	at, err := follow(dir, target)
	if err != nil || at.missing {
		return err == nil && !exists(filepath.Dir(at.real))
	}
	r, err := Open(filepath.Dir(at.real))
	return err == nil && r != nil && r.Dir == dir
}

// planted returns an element of the result of Check.
func planted(path, why string) Path {
	mode, _ := lstat(path) // zero after an error
	return Path{Path: path, IsDir: mode.IsDir(), Symlink: isLink(path), Why: why}
}

// gitDirs returns the directories in which a rebase can be in progress: the git
// directory of every work tree of the repository.
func (r *Repository) gitDirs() []string {
	dirs := append([]string{r.Dir, r.Common}, r.worktrees()...)
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
