// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/gitstate"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Snapshot is what git obeyed in a work tree before a command that may write to its
// git directories. [Take] makes one, [Recall] one of an earlier process; the zero value is not
// usable. One goroutine at a time may use it.
type Snapshot struct {
	empty  string // a directory that was no repository, resolved; or ""
	common string
	repos  []*Repository // one for each work tree that was looked at, with the same Common
	before map[fact]bool
	cache  *indexes
	hash   int              // bytes of an object name
	refs   bool             // git makes symbolic links for symbolic refs
	late   bool             // the command has ended, and it is not known when
	index  map[string]stamp // indexes that were looked at while the command runs
}

// Take looks at the work tree work, whose repository is r: what [Open] has returned
// for it, nil if there is none. What is in directories that closed reports cannot be
// written to; it may be nil. With an [*IndexError] the snapshot is usable nevertheless,
// with any other error it is nil.
func Take(work string, r *Repository, o Outside, closed func(path string) bool) (*Snapshot, error) {
	s := &Snapshot{cache: &indexes{}, before: map[fact]bool{}, index: map[string]stamp{}}
	if r == nil {
		at, err := followAbs(work)
		s.empty = at.real
		s.before[fact{kind: isEmpty, path: s.empty}] = true
		if link := join(s.empty, linkName); exists(link) { // git does not take it for one
			s.before[fact{kind: isShut, path: link}] = true
		}
		return s, err
	}
	own := r.readOwn(o)
	s.hash, s.refs = own.hash, own.linkRefs || o.read().linkRefs
	s.common, s.repos = r.Common, []*Repository{r}
	odd, err := r.odd(closed)
	if err != nil {
		return nil, err
	}
	s.before[fact{kind: isCommon, path: r.Common}] = true
	for path, what := range odd {
		s.before[newFact(isOdd, path, what)] = true
	}
	for _, dir := range r.worktrees() {
		s.before[fact{kind: isAdmin, path: dir}] = true
	}
	found, _ := r.orders()
	for _, f := range slices.Concat(found, r.outsideNames(s.cache, s.hash)) {
		s.before[f.fact] = true
	}
	if closed != nil {
		s.shut(closed)
	}
	return s, s.addTree(r)
}

// shut notes what the command cannot change at the top of the git directories.
func (s *Snapshot) shut(closed func(path string) bool) {
	for _, dir := range s.repos[0].gitDirs() {
		names := []string{commonName, gitdirName, configName, worktreeName, hooksName, "info", "modules",
			"branches", "remotes"}
		for _, entry := range entries(dir) {
			names = append(names, entry.Name())
		}
		for _, name := range names {
			if path := join(dir, name); closed(path) {
				s.before[fact{kind: isShut, path: path}] = true
			}
		}
	}
}

// addTree adds what is of one work tree alone.
func (s *Snapshot) addTree(r *Repository) error {
	s.before[fact{isTree, r.Work, r.Dir}] = true
	for _, f := range slices.Concat(r.obeyed(), r.bareAround()) {
		s.before[f.fact] = true
	}
	links, err := r.populated(s.cache, s.hash)
	for _, link := range links {
		s.before[fact{kind: isSubmodule, path: link}] = true
	}
	return err
}

// Key names what the snapshot is of: the same for all work trees of a repository, wherever its
// directory was moved on a file system.
func (s *Snapshot) Key() string {
	path, kind := s.common, "git"
	if s.empty != "" {
		path, kind = s.empty, "none"
	}
	st, _ := lstatStamp(path) // the zero one is of no file
	return fmt.Sprintf("%s %d %d", kind, st.device, st.inode)
}

// Text returns what [Recall] and [Snapshot.Adopt] read.
func (s *Snapshot) Text() []byte { return encodeFacts(s.before) }

// Adopt takes what was true before from the text of an older snapshot with the same Key, and
// keeps what only s knows: that of its own work tree, if the older one has not looked at it. An
// error changes nothing.
func (s *Snapshot) Adopt(text []byte) error {
	older, err := decodeFacts(text)
	if err != nil || s.empty != "" {
		return err
	}
	if !older[fact{kind: isCommon, path: s.common}] {
		return fmt.Errorf("%w about %s", errFacts, s.common)
	}
	own := s.before
	r := s.repos[0]
	s.before = older
	if older[fact{isTree, r.Work, r.Dir}] {
		return nil
	}
	for f := range own {
		if f.kind == isTree || f.kind == isSubmodule || f.kind == isName &&
			f.path == join(r.Work, headName) || f.kind == isFile && within(r.Dir, f.path) &&
			!within(r.Common, f.path) {
			s.before[f] = true
		}
	}
	return nil
}

// Recall returns the snapshot that an earlier process has taken, from its text. What commands
// could not change then is not looked at again.
func Recall(text []byte, o Outside) (*Snapshot, error) {
	facts, err := decodeFacts(text)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{before: facts, index: map[string]stamp{}, late: true}
	for f := range facts {
		switch f.kind {
		case isEmpty:
			s.empty = f.path
		case isCommon:
			s.common = f.path
		case isTree:
			s.repos = append(s.repos, &Repository{Work: f.path, Dir: f.value})
		}
	}
	for _, r := range s.repos {
		r.Common, r.CommonMissing, r.DirMissing = s.common, !exists(s.common), !exists(r.Dir)
	}
	if s.empty == "" && (s.common == "" || len(s.repos) == 0) {
		return nil, errFacts
	}
	if s.empty == "" {
		own := s.repos[0].readOwn(o)
		s.hash, s.refs = own.hash, own.linkRefs || o.read().linkRefs
	}
	return s, nil
}

// Doubt returns, for a snapshot that was recalled, a sentence about what a command or, since, a
// user may have made; or "".
func (s *Snapshot) Doubt() string {
	if s.empty == "" || !exists(join(s.empty, linkName)) {
		return ""
	}
	return fmt.Sprintf("a run in %s was killed, and a .git has appeared there since; if you have not made it, remove it before you use git there", text.Word(s.empty))
}

// Place returns the directory that the snapshot is of: a git directory, or one that was no
// repository.
func (s *Snapshot) Place() string { return s.common + s.empty }

// whyBare is why the HEAD of a bare repository is harmful.
const whyBare = "it appeared; git would take the directory for a bare repository and obey its configuration"

// bareAround returns the HEAD of a bare repository that the work tree is itself. Git takes it for
// the repository when .git is none, and a command that may write to .git can see to that.
func (r *Repository) bareAround() []finding {
	if r.Bare || !IsBare(r.Work) {
		return nil
	}
	return []finding{{newFact(isName, join(r.Work, headName), "bare"), whyBare}}
}

// populated returns the .git of each gitlink in the index that has one.
func (r *Repository) populated(c *indexes, hash int) ([]string, error) {
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
// write to, as far as they exist.
func (r *Repository) obeyed() []finding {
	var found []finding
	add := func(path, why string) {
		st, err := lstatStamp(path)
		if err == nil || !absent(err) {
			found = append(found, finding{newFact(isFile, path,
				fmt.Sprint(st.inode, st.size, st.modified)), why})
		}
	}
	for _, dir := range slices.Compact([]string{r.Dir, r.Common}) {
		add(join(dir, commonName),
			"git would take its configuration and hooks from the directory that it names")
		add(join(dir, worktreeName), "git would obey it as a configuration")
		add(join(dir, gitdirName), "git would take it for the name of a work tree")
	}
	add(join(r.Common, configName), "git obeys it as its configuration")
	add(join(r.Common, hooksName), "git runs what is in it")
	add(join(join(r.Common, "info"), "attributes"), "git runs the filters that it chooses")
	return found
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
	if s.empty != "" {
		return s.checkEmpty(), nil
	}
	var l list
	s.quick(&l)
	for _, dir := range s.repos[0].worktrees() {
		if !s.before[fact{kind: isAdmin, path: dir}] && !pointsBack(dir) {
			l.add(planted(dir, "git worktree repair would write to the .git that it names, which does not name it"))
		}
	}
	var errs []error
	for _, r := range s.repos {
		_, err := s.checkIndex(&l, r)
		errs = append(errs, err)
	}
	return l.paths, errors.Join(append(errs, s.checkOdd(&l, closed))...)
}

// Look returns what Check does of the places where git outside finds orders, but for what takes
// long, and the directories and files in which more may appear. It is for while a command runs.
func (s *Snapshot) Look() (found []Path, places []string) {
	if s.empty != "" {
		return s.checkEmpty(), []string{s.empty}
	}
	var l list
	places = s.quick(&l)
	for _, r := range s.repos {
		at := join(r.Dir, indexName)
		st, err := lstatStamp(at)
		if err != nil || st == s.index[at] {
			continue
		}
		more, _ := s.checkIndex(&l, r) // what cannot be read is an error of Check
		if places = append(places, more...); len(more) == 0 {
			s.index[at] = st
		}
	}
	return l.paths, append(places, join(s.common, worktreesName))
}

// quick is what Look and Check have in common. It returns what it has looked at.
func (s *Snapshot) quick(l *list) (looked []string) {
	found, looked := s.repos[0].orders()
	for _, r := range s.repos {
		found = append(found, slices.Concat(r.obeyed(), r.bareAround())...)
		if !r.Usable() {
			looked = append(looked, r.Work)
		}
	}
	for _, f := range found {
		s.addNew(l, f)
	}
	for _, f := range s.repos[1:] {
		if f.Dir != s.common && !within(s.common, f.Dir) {
			more, places := f.orders()
			for _, f := range more {
				s.addNew(l, f)
			}
			looked = append(looked, places...)
		}
	}
	for _, dir := range s.repos[0].worktrees() {
		if !s.before[fact{kind: isAdmin, path: dir}] { // or Shut protects its files
			checkLinked(l, dir)
		}
	}
	return looked
}

// addNew adds a finding that was none before.
func (s *Snapshot) addNew(l *list, f finding) {
	if s.before[f.fact] || s.shutAt(f.path) || f.kind == isOdd && s.refs && s.isRef(f.path, f.value) {
		return
	}
	l.add(planted(f.path, f.why))
}

// shutAt reports whether a path lies in what the command cannot change.
func (s *Snapshot) shutAt(path string) bool {
	for at := path; len(at) > 1; at = filepath.Dir(at) {
		if s.before[fact{kind: isShut, path: at}] {
			return true
		}
	}
	return false
}

// checkIndex looks at the submodules of one work tree, and returns the places where the .git of
// a new one can appear.
func (s *Snapshot) checkIndex(l *list, r *Repository) (places []string, err error) {
	for _, f := range r.outsideNames(s.cache, s.hash) {
		s.addNew(l, f)
	}
	links, err := r.gitlinks(s.cache, s.hash)
	for _, name := range links {
		at, followErr := follow(r.Work, join(name, linkName))
		switch {
		case followErr != nil || s.before[fact{kind: isSubmodule, path: at.real}]:
		case at.missing:
			places = append(places, above(filepath.Dir(at.real)))
		default:
			l.add(planted(at.real, "git status would run git in this submodule and obey its configuration"))
		}
	}
	var broken *IndexError
	if errors.As(err, &broken) && broken.outside {
		err = nil // it is in the list
	}
	return places, err
}

// above returns a directory, or the nearest one above it that exists.
func above(dir string) string {
	for !exists(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	return dir
}

// whyOdd is why links and the like are harmful.
const whyOdd = "it appeared and is neither a file nor a directory; git would read, write or remove something else through it"

// checkOdd looks for what is neither a file nor a directory. Git outside would write
// and remove files through a symbolic link.
func (s *Snapshot) checkOdd(l *list, closed func(path string) bool) error {
	var errs []error
	for i, r := range s.repos {
		if i > 0 && (r.Dir == s.common || within(s.common, r.Dir)) {
			continue
		}
		now, err := r.odd(closed)
		errs = append(errs, err)
		for _, path := range slices.Sorted(maps.Keys(now)) {
			s.addNew(l, finding{newFact(isOdd, path, now[path]), whyOdd})
		}
	}
	return errors.Join(errs...)
}

// isRef reports whether a symbolic link is a symbolic ref, as git makes them with
// core.preferSymlinkRefs.
func (s *Snapshot) isRef(path, what string) bool {
	target, ok := strings.CutPrefix(what, oddLink+"refs/")
	ref := path == join(s.repos[0].Dir, headName) || path == join(s.common, headName) ||
		within(join(s.common, "refs"), path)
	return ok && ref && gitstate.InsideName(target)
}

// checkEmpty looks at a directory that was no repository.
func (s *Snapshot) checkEmpty() []Path {
	var l list
	if link := join(s.empty, linkName); exists(link) && !s.late && !s.shutAt(link) {
		// or a user has made it since
		l.add(planted(link, "it appeared; git would take the directory for a repository and obey its configuration"))
	}
	if bare, err := openBare(s.empty); bare != nil || err != nil {
		l.add(planted(join(s.empty, headName), whyBare))
	}
	return l.paths
}

// checkLinked looks at the git directory of a new linked work tree. What "git worktree
// add" writes names the shared git directory by "../..", and without
// extensions.worktreeConfig there is no configuration.
func checkLinked(l *list, dir string) {
	text, err := ReadFile(join(dir, commonName), pointerLimit)
	named := string(bytes.TrimRight(text, "\r\n"))
	if err != nil && !absent(err) || err == nil && named != "../.." && len(text) > 0 || isLink(dir) {
		l.add(planted(dir, "git in that work tree would take its configuration and hooks from elsewhere"))
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
