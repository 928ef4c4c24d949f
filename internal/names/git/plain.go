// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"io/fs"
	"slices"
)

// A plainRecord says that a repository is plain: its git directory is .git in the work
// tree, and git obeys nothing outside of that because of it. The stamps are those of
// .git and of [plainNames] in it, which is all that was read to know it. A missing
// file has a zero stamp, and cannot appear without a new stamp of .git.
type plainRecord [4]stamp

// plainNames are files and directories in .git, with their types.
var plainNames = [...]struct {
	name string
	mode fs.FileMode
}{{"", fs.ModeDir}, {configName, 0}, {hooksName, fs.ModeDir}, {indexName, 0}}

// OpenProtected returns what [Open] and [Repository.Protected] return for the
// directory work, which has no symbolic link in it. The repository is nil if Open
// returns none, or an error. A plain repository that the cache of o knows, and that
// has not changed since, is not read again.
func OpenProtected(work string, o Outside) (*Repository, []Path, error) {
	link := join(work, linkName)
	record, ok := o.Cache.record(link)
	if ok && o.Cache.isPlain(link, record) {
		r, said := &Repository{Work: work, Link: link, Dir: link, Common: link}, o.read()
		return r, r.protected(reading{own: &configReader{}, said: said}), errors.Join(said.errs...)
	}
	now := nowStamp()
	r, err := Open(work)
	if r == nil || err != nil {
		return nil, nil, err
	}
	read := r.read(o)
	if ok && r.plain(read) && !record.racy(now) {
		o.Cache.know(link, record)
	}
	return r, r.protected(read), read.err
}

// plain reports whether git obeys nothing outside of .git because of the repository.
func (r *Repository) plain(read reading) bool {
	if r.Bare || r.Pointer || read.own.leads || len(read.links) > 0 || read.err != nil ||
		exists(join(r.Dir, commonName)) || exists(join(r.Dir, worktreeName)) {
		return false
	}
	read.said = &configReader{}
	return len(r.protected(read)) == 1
}

// record returns the stamps of the git directory link. It reports false if there is
// none, if a symbolic link is on the way to it or in it, or for a nil Cache.
func (c *Cache) record(link string) (plainRecord, bool) {
	var r plainRecord
	if c == nil {
		return r, false
	}
	t, err := openTree(link)
	if err != nil {
		return r, false
	}
	defer t.close()
	for i, n := range plainNames {
		st, mode, err := t.stat(n.name)
		if absent(err) {
			continue
		}
		if err != nil || mode != n.mode {
			return r, false
		}
		r[i] = st
	}
	return r, true
}

// racy reports whether something in it can change once more without a new stamp.
func (r plainRecord) racy(now int64) bool {
	return slices.ContainsFunc(r[:], func(s stamp) bool { return s != noStamp && s.racy(now) })
}

// isPlain reports whether a repository is known as plain.
func (c *Cache) isPlain(link string, r plainRecord) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.plain[link]
	return ok && known == r
}

// know remembers a plain repository, unless it has changed since the record was made.
func (c *Cache) know(link string, r plainRecord) {
	if again, ok := c.record(link); ok && again == r {
		c.mu.Lock()
		defer c.mu.Unlock()
		remember(&c.plain, link, r, maxPlain)
		c.changed = true
	}
}
