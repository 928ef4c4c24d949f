// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"errors"
	"slices"
	"strings"
)

// A knownRecord says that a repository is a plain one: its git folder is in the work
// tree, and nothing in that leads anywhere else. The stamps are of all that was read
// to know it; a name that was not there has none, and cannot come into being without
// the folder's stamp changing.
type knownRecord struct {
	dir, config, hooks, index stamp
}

// maxKnown bounds how many repositories a cache remembers.
const maxKnown = 4096

// A reading is what the configurations of the user and the system say.
type reading struct {
	done  bool
	paths []Path
	hooks []string
	errs  []error
}

// AtOnce returns o with a memory of what the configurations of the user and the
// system say, for [OpenProtected] of many repositories at one moment.
func (o Outside) AtOnce() Outside {
	o.said = &reading{}
	return o
}

// read reads them, once.
func (s *reading) read(o Outside) *reading {
	if !s.done {
		o.said = nil
		c := &configReader{home: o.Home, hash: sha1Size}
		c.people(o)
		*s = reading{done: true, paths: c.paths, hooks: c.hooks, errs: c.errs}
	}
	return s
}

// OpenProtected returns what [Open] and [Repository.Protected] return for the folder
// work, which has no symbolic link in it. The repository is nil where Open returns
// none, or an error. A plain repository that the cache of o knows, and that has not
// changed since, is not read again; o must come from [Outside.AtOnce] for that.
func OpenProtected(work string, o Outside) (*Repository, []Path, error) {
	link := join(work, linkName)
	var known, fresh knownRecord
	remembered := false
	if o.Cache != nil && o.said != nil {
		known, remembered = o.Cache.known[link]
		var there bool
		if fresh, there = recordOf(link); remembered && there && fresh == known {
			r := &Repository{Work: work, Link: link, Dir: link, Common: link}
			said := o.said.read(o)
			return r, r.protectedPlain(said), errors.Join(said.errs...)
		}
	}
	now := nowStamp()
	if remembered {
		delete(o.Cache.known, link)
		o.Cache.changed = true
	}
	r, err := Open(work)
	if r == nil || err != nil {
		return nil, nil, err
	}
	paths, err := r.Protected(o)
	if fresh.dir != (stamp{}) && !fresh.racy(now) && r.plain(work, fresh, o.Cache) {
		if again, there := recordOf(link); there && again == fresh {
			o.Cache.know(link, fresh)
		}
	}
	return r, paths, err
}

// protectedPlain is [Repository.Protected] for a plain repository.
func (r *Repository) protectedPlain(said *reading) []Path {
	var l list
	l.add(Path{Path: r.Link, Folder: true, Why: "git folder"})
	add := func(paths []Path) {
		for _, p := range paths {
			if !within(r.Dir, p.Path) || p.Symlink {
				l.add(p)
			}
		}
	}
	add(said.paths)
	if len(said.hooks) > 0 {
		c := &configReader{hooks: said.hooks}
		r.hookFolders(c) // relative ones are other folders for each repository
		add(c.paths)
	}
	return l.paths
}

// recordOf returns the stamps of the git folder link. It reports false if there is
// none, or if a symbolic link is on the way to it.
func recordOf(link string) (knownRecord, bool) {
	h, err := openPlain(link)
	if err != nil {
		return knownRecord{}, false
	}
	defer h.close()
	var k knownRecord
	var isFolder bool
	if k.dir, isFolder, err = h.stat(""); err != nil || !isFolder {
		return knownRecord{}, false
	}
	for _, one := range []struct {
		name string
		into *stamp
	}{{configName, &k.config}, {"hooks", &k.hooks}, {indexName, &k.index}} {
		st, _, err := h.stat(one.name)
		if err != nil && !absent(err) {
			return knownRecord{}, false
		}
		*one.into = st
	}
	return k, true
}

// racy reports whether something in it can change once more without its stamp.
func (k knownRecord) racy(now int64) bool {
	for _, s := range []stamp{k.dir, k.config, k.hooks, k.index} {
		if s != (stamp{}) && s.racy(now) {
			return true
		}
	}
	return false
}

// know remembers a plain repository.
func (c *Cache) know(link string, k knownRecord) {
	if len(c.known) >= maxKnown {
		clear(c.known)
	}
	if c.known == nil {
		c.known = make(map[string]knownRecord)
	}
	c.known[link] = k
	c.changed = true
}

// plain reports whether nothing in the repository leads anywhere else.
func (r *Repository) plain(work string, k knownRecord, c *Cache) bool {
	if r.Work != work || r.Bare || r.Pointer || r.Dir != r.Link || r.Common != r.Link || r.DirMissing || len(r.links) > 0 {
		return false
	}
	if stands(join(r.Dir, worktreeName)) {
		return false
	}
	for _, name := range closedFolders {
		if isLink(join(r.Dir, name)) {
			return false
		}
	}
	if k.config != (stamp{}) && !plainConfig(join(r.Dir, configName)) {
		return false
	}
	if k.hooks != (stamp{}) && !plainHooks(join(r.Dir, "hooks")) {
		return false
	}
	if k.index == (stamp{}) {
		return true
	}
	if mode, err := lstat(join(r.Dir, indexName)); err != nil || mode != 0 {
		return false
	}
	links, err := r.gitlinks(c, sha1Size)
	return err == nil && len(links) == 0
}

// plainHooks reports whether a folder of hooks is one, with no link in it.
func plainHooks(path string) bool {
	mode, err := lstat(path)
	if err != nil || !mode.IsDir() {
		return false
	}
	plain := true
	err = readFolder(path, func(_ []byte, kind entryKind) bool {
		plain = kind == kindFile || kind == kindFolder
		return plain
	})
	return err == nil && plain
}

// plainConfig reports whether a configuration names no other file or folder, and
// nothing that changes how the repository is read.
func plainConfig(path string) bool {
	if mode, err := lstat(path); err != nil || mode != 0 {
		return false
	}
	text, err := readFile(path, maxConfig)
	if err != nil {
		return false
	}
	entries, err := ParseConfig(text)
	return err == nil && !slices.ContainsFunc(entries, func(e Entry) bool {
		return e.Key == "core.hookspath" || strings.HasPrefix(e.Key, "extensions.") || strings.HasPrefix(e.Key, "include")
	})
}
