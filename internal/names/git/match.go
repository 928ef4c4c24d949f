// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Matches remembers what [Match] has found below one root. The zero value remembers nothing.
// A directory is not read again only if its file system keeps the time of the last change,
// which no program can set, and that time, inode and device are the same.
type Matches struct {
	key     string
	dirs    []matchDir // the root is the first; a directory comes after the one that it is in
	changed bool
}

// maxMatches and maxDirs bound what is written down.
const (
	maxMatches = 32 << 20 // bytes
	maxDirs    = 200_000
)

// rereadWorth is the number of names that make new stamps alone worth a new file. The directory
// that every run writes to has a new stamp each time, and reading it again costs less than writing
// down all the others.
const rereadWorth = 1024

// A matchDir is one directory below the root.
type matchDir struct {
	path  string // relative to the root; empty for the root
	stamp stamp  // when it was read; noStamp if it must be read again
	names []string
}

// ErrTooMany is returned by [Match] when it has found more than it may.
var ErrTooMany = errors.New("too many names match")

// A Wanted says what [Match] looks for: whether a path, relative to the root, is kept, and
// whether a directory is entered. Its answers must depend on nothing else.
type Wanted func(path string, kind fs.FileMode) (keep, enter bool)

// Shut is the last element of a path that [Match] returns for a directory that may not be listed
// although its files may be opened by name. It stands for what is in it.
const Shut = "."

// Match returns the paths below root, relative to it and sorted, that want keeps; at most so
// many, 0 for any number. Links are not followed, on the way to root neither. What this process
// may not enter counts as missing; see [Shut] for what it may not list.
//
// With m, which may be nil, only directories are read that have changed since. Key stands for
// root and want: what was found with another one is forgotten. With an error m forgets all.
func Match(root, key string, m *Matches, want Wanted, most int) (found []string, err error) {
	if m == nil {
		m = &Matches{}
	}
	if m.key != key || len(m.dirs) == 0 {
		*m = Matches{key: key, dirs: []matchDir{{}}, changed: true}
	}
	defer func() {
		if err != nil {
			*m = Matches{}
		}
	}()
	t, err := openTree(root)
	switch {
	case errors.Is(err, fs.ErrPermission) || err != nil && absent(err):
		*m = Matches{}
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer t.close()
	s := matcher{Matches: m, tree: t, want: want, most: most, lasting: map[uint64]bool{}}
	if err := s.search(); err != nil {
		return nil, err
	}
	for _, d := range m.dirs {
		for _, name := range d.names {
			found = append(found, strings.TrimPrefix(d.path+"/"+name, "/"))
		}
	}
	slices.Sort(found)
	return found, nil
}

// A matcher is one Match.
type matcher struct {
	*Matches
	tree    tree
	want    Wanted
	most    int
	found   int
	reread  int             // cost of reading directories that only have a new stamp
	lasting map[uint64]bool // devices whose directories are trusted
}

// search brings the directories up to date.
func (s *matcher) search() error {
	looks := make([]look, len(s.dirs))
	inParallel(len(s.dirs), func(i int) { looks[i] = s.look(&s.dirs[i]) })
	gone, again := map[string]bool{}, map[string]bool{}
	kept, old := s.dirs[:0], []int{}
	for i, d := range s.dirs {
		switch {
		case i > 0 && gone[parent(d.path)], looks[i] == lookGone:
			gone[d.path], s.changed = true, true
			continue
		case looks[i] != lookSame:
			again[d.path] = true
			old = append(old, len(kept))
		}
		s.found += len(d.names)
		kept = append(kept, d)
	}
	clear(s.dirs[len(kept):])
	s.dirs = kept
	known := map[string]bool{}
	if len(again) > 0 {
		for _, d := range kept {
			if again[parent(d.path)] {
				known[d.path] = true
			}
		}
	}
	for _, i := range old {
		if err := s.read(i, known); err != nil {
			return err
		}
	}
	for i := len(kept); i < len(s.dirs); i++ {
		if err := s.read(i, nil); err != nil {
			return err
		}
	}
	s.changed = s.changed || s.reread >= rereadWorth
	return nil
}

// A look is what has become of a directory.
type look uint8

const (
	lookSame look = iota
	lookChanged
	lookGone
)

// parent returns the directory that a path lies in, empty for the root's.
func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, filepath.Separator), 0)]
}

// look says what has become of a directory.
func (s *matcher) look(d *matchDir) look {
	st, mode, err := s.tree.stat(d.path)
	switch {
	case err != nil && absent(err), err == nil && !mode.IsDir():
		return lookGone
	case err != nil, st != d.stamp, d.stamp == noStamp:
		return lookChanged
	}
	return lookSame
}

// read reads one directory, and adds the directories in it that are not known.
func (s *matcher) read(i int, known map[string]bool) error {
	d := s.dirs[i]
	now, count := nowStamp(), 0
	before, _, err := s.tree.stat(d.path)
	if err == nil {
		count, err = s.names(i, known)
	}
	if err != nil && !absent(err) && !errors.Is(err, fs.ErrPermission) {
		return &fs.PathError{Op: "search", Path: d.path, Err: cause(err)}
	}
	// What cannot be read now may be readable for the same user later, without a change.
	if err != nil || before.racy(now) || !s.trusted(d.path, before.device) {
		before = noStamp
	}
	s.dirs[i].stamp = before
	if before != noStamp {
		s.reread += 64 + count
	}
	if !slices.Equal(d.names, s.dirs[i].names) {
		s.changed = true
	}
	if s.found += len(s.dirs[i].names) - len(d.names); s.most > 0 && s.found > s.most {
		return ErrTooMany
	}
	return nil
}

// names reads the names in a directory and returns how many there are.
func (s *matcher) names(i int, known map[string]bool) (count int, err error) {
	path := s.dirs[i].path
	var keep []string
	f, err := s.tree.open(path)
	if err == nil {
		defer f.Close()
		err = readDir(f, func(e fs.DirEntry) bool {
			count++
			below := filepath.Join(path, e.Name())
			kept, enter := s.want(below, e.Type())
			if kept {
				keep = append(keep, e.Name())
			}
			if enter && e.IsDir() && !known[below] {
				s.dirs = append(s.dirs, matchDir{path: below})
				s.changed = true
			}
			return s.most == 0 || len(keep) <= s.most
		})
	}
	if errors.Is(err, fs.ErrPermission) && s.tree.enterable(path) {
		keep = append(keep, Shut)
	}
	slices.Sort(keep)
	s.dirs[i].names = keep
	return count, err
}

// trusted reports whether the file system of a directory notes every change.
func (s *matcher) trusted(path string, device uint64) bool {
	lasting, known := s.lasting[device]
	if !known {
		lasting = s.tree.keepsTimes(path)
		s.lasting[device] = lasting
	}
	return lasting
}

// inParallel calls f with 0 to n-1, on several processors where it is worth it.
func inParallel(n int, f func(i int)) {
	const block, most = 64, 4
	var next atomic.Int64
	work := func() {
		for {
			from := int(next.Add(block)) - block
			if from >= n {
				return
			}
			for i := from; i < min(from+block, n); i++ {
				f(i)
			}
		}
	}
	var others sync.WaitGroup
	if n >= 4*block {
		for range min(runtime.GOMAXPROCS(0), most) - 1 {
			others.Go(work)
		}
	}
	work()
	others.Wait()
}

// matchMark begins a file of matches. Its number changes with the format.
const matchMark = "sallyport matches 1\n"

// LoadMatches reads what [Matches.Save] has written. A file that is missing, unreadable, too
// big, of another version or damaged gives empty Matches, which only cost time.
func LoadMatches(path string) *Matches {
	text, err := ReadFile(path, maxMatches)
	body := len(text) - 4
	if err != nil || body < len(matchMark) || string(text[:len(matchMark)]) != matchMark ||
		crc32.ChecksumIEEE(text[:body]) != binary.LittleEndian.Uint32(text[body:]) {
		return &Matches{}
	}
	d := decoder{text: text[len(matchMark):body]}
	d.same = string(d.text)
	m := &Matches{key: d.string(), dirs: make([]matchDir, d.count(stampBytes+2))}
	for i := range m.dirs {
		at := matchDir{path: d.string(), stamp: d.stamp()}
		at.names = make([]string, d.count(1))
		for k := range at.names {
			at.names[k] = d.string()
			d.bad = d.bad || filepath.Base(at.names[k]) != at.names[k] || !filepath.IsLocal(at.names[k])
		}
		if d.bad = d.bad || (at.path == "") != (i == 0) || i > 0 && !filepath.IsLocal(at.path); d.bad {
			return &Matches{}
		}
		m.dirs[i] = at
	}
	if d.bad || len(d.text) != 0 {
		return &Matches{}
	}
	return m
}

// Changed reports whether there is something to save. More than 200 000 directories are not saved.
func (m *Matches) Changed() bool { return m.changed && len(m.dirs) <= maxDirs }

// Save writes what is remembered to a file that only its owner can read, in one step. It does
// nothing if nothing has changed since [LoadMatches].
func (m *Matches) Save(path string) error {
	if !m.Changed() {
		return nil
	}
	e := encoder{text: []byte(matchMark)}
	e.string(m.key)
	e.number(uint64(len(m.dirs)))
	for i := range m.dirs {
		e.string(m.dirs[i].path)
		e.stamp(m.dirs[i].stamp)
		e.number(uint64(len(m.dirs[i].names)))
		for _, name := range m.dirs[i].names {
			e.string(name)
		}
	}
	if err := safefile.Replace(path, binary.LittleEndian.AppendUint32(e.text,
		crc32.ChecksumIEEE(e.text))); err != nil {
		return err
	}
	m.changed = false
	return nil
}
