// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
)

// A Snapshot is what was obeyed in a work tree before a command ran that may write
// to its git folders. The zero value is not usable; [Take] makes one.
type Snapshot struct {
	work    string      // resolved
	repo    *Repository // nil if there was none
	outside Outside
	hash    int
	files   []seenFile
	trees   map[string]bool // linked work trees
	links   map[string]bool // populated submodules: their .git
	todo    map[string]bool // commands that rebases already had to run, with their git folder
}

// A seenFile is a file with what it was.
type seenFile struct {
	path, why string
	present   bool
	stamp     stamp
}

// Take looks at the work tree work, whose repository is r: what [Open] has returned
// for it, nil if there is none. The error is that of [Repository.Submodules]; the
// snapshot is usable nevertheless.
func Take(work string, r *Repository, o Outside) (*Snapshot, error) {
	s := &Snapshot{work: work, repo: r, outside: o, hash: sha1Size}
	if r == nil {
		work, err := filepath.Abs(work)
		if err != nil {
			return s, err
		}
		at, err := follow(work, "")
		s.work = at.real
		return s, err
	}
	s.work = r.Work
	s.files = r.obeyed()
	for i := range s.files {
		f := &s.files[i]
		st, err := lstatStamp(f.path)
		f.present, f.stamp = err == nil || !absent(err), st
	}
	s.trees = map[string]bool{}
	for _, name := range r.linked() {
		s.trees[name] = true
	}
	s.hash = r.hashSize(o)
	s.todo = map[string]bool{}
	for _, dir := range r.gitFolders() {
		for _, command := range rebaseCommands(dir) {
			s.todo[dir+command] = true
		}
	}
	s.links = map[string]bool{}
	links, err := r.gitlinks(o.Cache, s.hash)
	for _, name := range links {
		if at, followErr := follow(r.Work, join(name, linkName)); followErr == nil && !at.missing {
			s.links[at.real] = true
		}
	}
	return s, err
}

// obeyed returns the files that git obeys in the folders that a command could
// write to.
func (r *Repository) obeyed() []seenFile {
	files := []seenFile{
		{path: join(r.Dir, commonName), why: "git would take its configuration and hooks from the folder that it names"},
		{path: join(r.Dir, worktreeName), why: "git would obey it as a configuration"},
		{path: join(r.Dir, gitdirName), why: "git would take it for the name of a work tree"},
	}
	if r.Common != r.Dir {
		files = append(files,
			seenFile{path: join(r.Common, commonName), why: "git would take its configuration and hooks from the folder that it names"},
			seenFile{path: join(r.Common, worktreeName), why: "git would obey it as a configuration"},
			seenFile{path: join(r.Common, gitdirName), why: "git would take it for the name of a work tree"})
	}
	return append(files,
		seenFile{path: join(r.Common, configName), why: "git obeys it as its configuration"},
		seenFile{path: join(r.Common, "hooks"), why: "git runs what is in it"},
		seenFile{path: join(join(r.Common, "info"), "attributes"), why: "git runs the filters that it chooses"})
}

// linked returns the names of the linked work trees.
func (r *Repository) linked() []string {
	if r.CommonMissing {
		return nil
	}
	return worktrees(join(r.Common, worktreesName))
}

// Check returns what git outside would obey and did not when the snapshot was
// taken, in a stable order. Moving every returned path elsewhere makes the work
// tree harmless again; Why tells what it would have done. It does not repeat what
// [Repository.Protected] and [Repository.Shut] keep from changing, except that
// files in the git folders that changed nevertheless are told.
//
// The error joins what kept it from looking; then something may be left that it
// did not see.
func (s *Snapshot) Check() ([]Path, error) {
	if s.repo == nil {
		return s.checkEmpty(), nil
	}
	var l list
	for _, f := range s.files {
		st, err := lstatStamp(f.path)
		switch present := err == nil || !absent(err); {
		case present && !f.present:
			l.add(s.path(f.path, "it appeared; "+f.why))
		case present && st.inode != f.stamp.inode, present && st.size != f.stamp.size, present && st.modified != f.stamp.modified:
			l.add(s.path(f.path, "it changed; "+f.why))
		}
	}
	for _, name := range s.repo.linked() {
		s.checkLinked(&l, name)
	}
	for _, dir := range s.repo.gitFolders() {
		if slices.ContainsFunc(rebaseCommands(dir), func(c string) bool { return !s.todo[dir+c] }) {
			l.add(s.path(join(dir, "rebase-merge"), "git rebase --continue would run the commands in its list"))
		}
	}
	links, err := s.repo.gitlinks(s.outside.Cache, s.hash)
	for _, name := range links {
		at, followErr := follow(s.repo.Work, join(name, linkName))
		if followErr == nil && !at.missing && !s.links[at.real] {
			l.add(s.path(at.real, "git status would run git in this submodule and obey its configuration"))
		}
	}
	return l.paths, err
}

// checkEmpty looks at a folder that was no repository.
func (s *Snapshot) checkEmpty() []Path {
	var l list
	if link := join(s.work, linkName); stands(link) {
		l.add(s.path(link, "it appeared; git would take the folder for a repository and obey its configuration"))
	}
	if bare, err := openBare(s.work); bare != nil || err != nil {
		l.add(s.path(join(s.work, headName), "it appeared; git would take the folder for a bare repository and obey its configuration"))
	}
	return l.paths
}

// checkLinked looks at one linked work tree. What "git worktree add" writes names
// the shared git folder by "../..", and without extensions.worktreeConfig there is
// no configuration.
func (s *Snapshot) checkLinked(l *list, name string) {
	r := s.repo
	if s.trees[name] {
		return // its files are kept by Shut
	}
	dir := join(join(r.Common, worktreesName), name)
	text, err := readFile(join(dir, commonName), pointerLimit)
	if err != nil && !absent(err) || err == nil && !bytes.Equal(bytes.TrimRight(text, "\r\n"), []byte("../..")) || isLink(dir) {
		l.add(s.path(dir, "git in that work tree would take its configuration and hooks from elsewhere"))
		return
	}
	if path := join(dir, worktreeName); stands(path) {
		l.add(s.path(path, "git in that work tree would obey it as a configuration"))
	}
	if path := join(dir, "modules"); stands(path) {
		l.add(s.path(path, "git in that work tree would obey the configurations in it"))
	}
}

// path makes what Check returns.
func (s *Snapshot) path(path, why string) Path {
	return Path{Path: path, Folder: isFolder(path), Symlink: isLink(path), Why: why}
}

// maxTodo is the size in bytes up to which the list of a rebase is read.
const maxTodo = 16 << 20

// gitFolders are the folders in which a rebase can be in progress: that of every
// work tree of the repository.
func (r *Repository) gitFolders() []string {
	dirs := []string{r.Dir}
	if r.Common != r.Dir {
		dirs = append(dirs, r.Common)
	}
	for _, name := range r.linked() {
		if dir := join(join(r.Common, worktreesName), name); dir != r.Dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// rebaseCommands returns the commands in the list of a rebase in progress in a git
// folder: lines that begin with "exec" or "x" (todo_command_info in git's
// sequencer.c). A list that cannot be read counts as one command without words.
func rebaseCommands(dir string) []string {
	text, err := readFile(join(join(dir, "rebase-merge"), "git-rebase-todo"), maxTodo)
	if err != nil {
		if absent(err) || errors.Is(err, errNotFile) {
			return nil
		}
		return []string{""}
	}
	var commands []string
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		for _, word := range []string{"exec", "x"} {
			rest, ok := bytes.CutPrefix(line, []byte(word))
			if ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t') {
				commands = append(commands, string(line))
			}
		}
	}
	return commands
}
