// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Limit bounds one [Scan]. The zero value means the defaults; a negative number
// lets nothing be read.
type Limit struct {
	Entries int           // names read and directories checked, in all; 0: DefaultEntries
	Time    time.Duration // 0: DefaultTime; the first 512 entries are free
	// Stop, if not nil, replaces the other bounds: the search goes on, in one thread, until
	// Stop returns true or everything that a Cache can hold is known. It is called often.
	Stop func() bool
}

// unlimited is more than a search reads, and can be multiplied.
const unlimited = math.MaxInt / (2 * hugeFactor)

// Defaults of a [Limit]: what a user does not notice at the start of a command.
const (
	DefaultEntries = 20_000
	DefaultTime    = 15 * time.Millisecond
)

// freeEntries are looked at whatever the time says, in about a millisecond: a busy
// machine searches a small tree whole.
const freeEntries = 512

// hugeFactor is by how much a directory that alone exceeds the limit may do so. Its
// names beyond that are never read.
const hugeFactor = 4

// Found is the result of a [Scan].
type Found struct {
	Repositories []string // directories below the root to [Open], sorted: they contain .git or are bare repositories
	Shut         []string // directories that may not be listed, sorted: what is in them is not known
	Complete     bool     // this call has looked at every directory
	Known        bool     // every directory has been read, by this call or before, and is not known to have changed
	Stopped      string   // if not Complete: the first directory that was not looked at, or not to its end
	Scanned      int      // names read and directories checked by this call, as in Limit.Entries
	Read         int      // the names among them
}

// Scan looks for repositories in the directories below root, breadth first. It does
// not follow symbolic links, and enters neither a directory named .git nor the inner
// directories of a bare repository; a git directory that a .git file elsewhere names
// looks like a bare one. The root itself is not in the result. A directory of a file system
// that holds no files, such as /proc, counts as empty.
//
// With a cache Scan reads only directories that have changed since, and goes on
// where the last call stopped; repositories in directories that it did not reach are
// reported as they were. A nil cache reads everything.
func Scan(root string, c *Cache, limit Limit) Found {
	if c == nil {
		c = &Cache{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit.Entries == 0 {
		limit.Entries = DefaultEntries
	}
	if limit.Time == 0 {
		limit.Time = DefaultTime
	}
	if limit.Stop != nil {
		limit.Entries = unlimited
	}
	begin := time.Now()
	at, err := followAbs(root)
	if err != nil || at.closed {
		return Found{Stopped: root}
	}
	if at.missing || !at.mode.IsDir() {
		return Found{Complete: true, Known: true}
	}
	t, err := openTree(at.real)
	if err != nil {
		return Found{Stopped: root}
	}
	defer t.close()
	if c.root != at.real || len(c.dirs) == 0 {
		c.root, c.dirs, c.next = at.real, []dir{{}}, 0
	}
	s := scanner{Cache: c, tree: t, limit: limit, begin: begin}
	s.check()
	s.read()
	found := s.collect()
	c.changed = c.changed || s.reread >= rereadWorth
	return found
}

// A scanner is one Scan.
type scanner struct {
	*Cache
	tree    tree
	limit   Limit
	begin   time.Time
	scanned int
	names   int             // those of scanned that are names
	reads   int             // directories read
	reread  int             // cost of reading directories that only have a new stamp
	stopped bool            // check did not reach every directory
	known   map[string]bool // directories in those that are read again
	empty   map[uint64]bool // devices other than the root's, and whether they hold no files
}

// rereadWorth is the number of names that make new stamps alone worth a new file. The
// directory that every run writes to has a new stamp each time, and reading it again
// costs less than writing down all the others.
const rereadWorth = 1024

// over reports whether one part of so many of the limit is used up.
func (s *scanner) over(part int) bool {
	return s.scanned >= s.limit.Entries/part || s.late(s.scanned, part)
}

// late reports whether one part of so many of the time is used up, after so many
// entries.
func (s *scanner) late(entries, part int) bool {
	if s.limit.Stop != nil {
		return s.halted()
	}
	return s.limit.Time < 0 || entries >= freeEntries && time.Since(s.begin) >= s.limit.Time/time.Duration(part)
}

// halted reports whether a search without other bounds was stopped, or knows as much as is
// remembered.
func (s *scanner) halted() bool {
	return s.limit.Stop != nil && (len(s.dirs) >= maxDirs || s.limit.Stop())
}

// A look is what has become of a directory.
type look uint8

const (
	lookNone look = iota // there was no time to look
	lookSame
	lookChanged
	lookAgain // it is the same, but may have changed without a new stamp, or is to be read whole
	lookGone
)

// check compares every directory that was read with its stamp, from where the last
// call stopped.
func (s *scanner) check() {
	part := 1
	order := make([]int32, 0, len(s.dirs))
	for k := range s.dirs {
		i := (s.next + k) % len(s.dirs)
		state := s.dirs[i].state
		if state&(dirRead|dirStale) != dirRead {
			part = 2 // in a tree with more directories than the limit, reading gets on as well
		}
		if state&dirRead != 0 {
			order = append(order, int32(i))
		}
	}
	s.next = 0
	looks := s.look(order[:min(len(order), max(s.limit.Entries/part, 0))], part)
	for k, i := range order {
		if k >= len(looks) || looks[k] == lookNone {
			s.next, s.stopped, s.changed = int(i), true, true
			return
		}
		s.scanned++
		switch looks[k] {
		case lookGone:
			s.dirs[i].state |= dirGone
		case lookChanged:
			s.dirs[i].state = s.dirs[i].state&^dirRacy | dirStale
		case lookAgain:
			s.dirs[i].state |= dirStale
		}
	}
}

// look looks at directories in their order, in one part of so many of the time. It
// is one system call for each, which is most of what a start in a big tree costs, so
// several processors share them.
func (s *scanner) look(order []int32, part int) []look {
	const block, most = 64, 4
	looks := make([]look, len(order))
	var next atomic.Int64
	work := func() {
		for {
			from := int(next.Add(block)) - block
			if from >= len(order) || s.late(from, part) {
				return
			}
			for k := from; k < min(from+block, len(order)); k++ {
				looks[k] = s.lookAt(&s.dirs[order[k]])
			}
		}
	}
	var others sync.WaitGroup
	if len(order) >= 4*block && s.limit.Stop == nil {
		for range min(runtime.GOMAXPROCS(0), most) - 1 {
			others.Go(work)
		}
	}
	work()
	others.Wait()
	return looks
}

// lookAt compares one directory with its stamp.
func (s *scanner) lookAt(d *dir) look {
	switch st, mode, err := s.tree.stat(d.path); {
	case err != nil || !mode.IsDir():
		return lookGone
	case st != d.stamp:
		return lookChanged
	case d.state&dirRacy != 0, d.state&dirHuge != 0 && s.limit.Stop != nil:
		return lookAgain
	}
	return lookSame
}

// read reads the directories that have changed, then those that were never read, then those
// that may have changed; the directories in them come at the end.
func (s *scanner) read() {
	s.known = map[string]bool{}
	again := map[string]bool{}
	var changed, racy []int
	for i, d := range s.dirs {
		if again[parent(d.path)] && d.state&dirGone == 0 {
			s.known[d.path] = true
		}
		if d.state&(dirStale|dirGone) == dirStale {
			again[d.path] = true
			if d.state&dirRacy != 0 {
				racy = append(racy, i)
			} else {
				changed = append(changed, i)
			}
		}
	}
	for s.readAll(changed) {
		for i := 0; i < len(s.dirs); i++ {
			if s.dirs[i].state&(dirRead|dirGone) == 0 && !s.readOne(i) {
				return
			}
		}
		if changed, racy = racy, nil; len(changed) == 0 {
			return
		}
	}
}

// readAll reads directories. It returns false if the limit is reached.
func (s *scanner) readAll(order []int) bool {
	for _, i := range order {
		if !s.readOne(i) {
			return false
		}
	}
	return true
}

// parent returns the directory that a path lies in, empty for the root's.
func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, filepath.Separator), 0)]
}

// readOne reads one directory. It returns false if the limit is reached.
func (s *scanner) readOne(i int) bool {
	if s.over(1) {
		return false
	}
	path, before, now := s.dirs[i].path, s.dirs[i], nowStamp()
	stamp, mode, err := s.tree.stat(path)
	if err != nil || !mode.IsDir() {
		s.dirs[i].state |= dirGone
		return true
	}
	first := s.scanned
	var marks marks
	var names []string
	var cut bool
	if !s.holdsNoFiles(path, stamp.device) {
		marks, names, cut, err = s.readNames(path)
	}
	switch {
	case err != nil && absent(err) && path != "": // since it was looked at, as the mount points of other runs
		s.dirs[i].state |= dirGone
		return true
	case cut && (s.reads > 0 || s.halted()):
		return false // it will be the first one next time
	}
	s.reads++
	s.names += s.scanned - first
	after := dir{path: path, state: dirRead, stamp: stamp}
	unread := err != nil && !errors.Is(err, fs.ErrPermission)
	if stamp.racy(now) {
		after.state |= dirRacy
	}
	if errors.Is(err, fs.ErrPermission) {
		after.state |= dirShut
	}
	if unread {
		after.stamp = noStamp
	}
	if unread || cut {
		after.state |= dirHuge
	}
	if marks.link || marks.like && exists(filepath.Join(s.root, path, linkName)) {
		after.state |= dirRepo
	}
	if marks.bare() {
		after.state |= dirBare
	}
	s.dirs[i] = after
	news := s.add(path, names, marks.bare())
	switch {
	case news || (before.state^after.state)&^(dirStale|dirRacy) != 0:
		s.changed = true
	case after.stamp != noStamp && after.state&dirRacy == 0:
		s.reread += 64 + s.scanned - first // finding it takes as long as reading 64 names
	}
	return true
}

// noStamp is of a directory that must be read again.
var noStamp stamp

// holdsNoFiles reports whether a directory is of another file system than the root, and of
// one that only shows what the kernel knows, or would mount something.
func (s *scanner) holdsNoFiles(path string, device uint64) bool {
	if len(s.dirs) == 0 || path == "" || device == s.dirs[0].stamp.device {
		return false
	}
	none, known := s.empty[device]
	if !known {
		if s.empty == nil {
			s.empty = map[uint64]bool{}
		}
		none = s.tree.holdsNoFiles(path)
		s.empty[device] = none
	}
	return none
}

// readNames reads the names in a directory, and reports whether the limit has cut
// them off. The names returned are of directories to go into.
func (s *scanner) readNames(path string) (m marks, dirs []string, cut bool, err error) {
	f, err := s.tree.open(path)
	if err != nil {
		return m, nil, false, err
	}
	defer f.Close()
	most := s.limit.Entries
	if s.reads == 0 {
		most = s.scanned + hugeFactor*s.limit.Entries
	}
	err = readDir(f, func(entry fs.DirEntry) bool {
		s.scanned++
		if s.scanned > most || s.scanned&255 == 0 && (s.reads > 0 && s.late(s.scanned, 1) || s.halted()) {
			cut = true
			return false
		}
		if !m.note(entry.Name()) && entry.IsDir() {
			dirs = append(dirs, entry.Name())
		}
		return true
	})
	return m, dirs, cut, err
}

// add adds the directories with these names, except those that are known, and reports
// whether there is one.
func (s *scanner) add(path string, names []string, bare bool) (news bool) {
	for _, name := range names {
		if path != "" {
			name = path + string(filepath.Separator) + name
		}
		if !s.known[name] && !(bare && inner(name)) {
			s.dirs = append(s.dirs, dir{path: name})
			news = true
		}
	}
	return news
}

// inner reports whether a directory in a git directory contains no work trees.
func inner(path string) bool {
	switch filepath.Base(path) {
	case "objects", "refs", "hooks", "info", "logs", "modules", worktreesName, "lfs":
		return true
	}
	return false
}

// collect returns what is known now, and forgets the directories that are gone.
func (s *scanner) collect() Found {
	found := Found{Complete: true, Known: true, Scanned: s.scanned, Read: s.names}
	gone, bare := map[string]bool{}, map[string]bool{}
	kept, next := s.dirs[:0], 0
	for i, d := range s.dirs {
		if i == s.next {
			next = len(kept)
			if s.stopped {
				found.stop(s.root, d.path)
			}
		}
		up := parent(d.path)
		if d.state&dirGone != 0 || i > 0 && (gone[up] || bare[up] && inner(d.path)) {
			gone[d.path], s.changed = true, true
			continue
		}
		delete(gone, d.path) // it has come back
		if d.state&dirBare != 0 {
			bare[d.path] = true
		}
		if d.state&(dirRepo|dirBare) != 0 && i > 0 {
			found.Repositories = append(found.Repositories, filepath.Join(s.root, d.path))
		}
		if d.state&dirShut != 0 {
			found.Shut = append(found.Shut, filepath.Join(s.root, d.path))
		}
		if d.state&(dirRead|dirStale|dirHuge) != dirRead {
			found.stop(s.root, d.path)
			found.Known = found.Known && d.state&(dirRead|dirRacy|dirHuge) == dirRead|dirRacy
		}
		kept = append(kept, d)
	}
	clear(s.dirs[len(kept):])
	s.dirs, s.next = kept, next
	slices.Sort(found.Repositories)
	slices.Sort(found.Shut)
	return found
}

// stop notes the first directory that was not looked at.
func (f *Found) stop(root, path string) {
	if f.Complete {
		f.Complete, f.Stopped = false, filepath.Join(root, path)
	}
}

// marks are the names in a directory by which git recognizes a repository.
type marks struct {
	link, like, head, objects, refs, common bool
}

// note takes a name and reports whether it is one that Scan does not enter.
func (m *marks) note(name string) bool {
	switch name {
	case linkName:
		m.link = true
		return true
	case headName:
		m.head = true
	case "objects":
		m.objects = true
	case "refs":
		m.refs = true
	case commonName:
		m.common = true
	default:
		m.like = m.like || linkLike(name)
	}
	return false
}

// bare reports whether git takes the directory for a git directory
// (is_git_directory).
func (m *marks) bare() bool {
	return m.head && (m.common || m.objects && m.refs)
}

// Marks reports whether a name in a directory is one by which git recognizes a repository.
func Marks(name string) bool {
	switch name {
	case linkName, headName, "objects", "refs", commonName:
		return true
	}
	return false
}

// IsBare reports whether git takes a directory for a git directory. No link is followed to
// what is in it. It asks for what git's is_git_directory asks for: HEAD, and objects and refs,
// here or in the directory that commondir names.
func IsBare(dir string) bool {
	return exists(join(dir, headName)) && (exists(join(dir, commonName)) || exists(join(dir, "objects")) && exists(join(dir, "refs")))
}

// linkLike reports whether a file system that folds names may take the name for
// .git: another case, the short name of Windows, or letters that macOS leaves out.
// The caller asks the file system whether it does.
func linkLike(name string) bool {
	if len(name) < len(linkName) {
		return false
	}
	switch name[0] {
	case '.':
		return strings.EqualFold(name, linkName) || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 })
	case 'g', 'G':
		return strings.EqualFold(name, "git~1")
	case 0xe2, 0xef: // the first byte of what macOS leaves out
		return true
	}
	return false
}
