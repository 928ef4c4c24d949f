// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"errors"
	"io/fs"
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
	Entries int           // names that are read and folders that are checked, in all; 0: DefaultEntries
	Time    time.Duration // 0: DefaultTime; the first 512 entries are free
}

// Defaults of a [Limit]: what a person does not notice at the start of a command.
const (
	DefaultEntries = 20_000
	DefaultTime    = 15 * time.Millisecond
)

// leastEntries is how much is looked at whatever the time says: about a millisecond,
// so that a small tree is searched whole on a machine that is busy with others.
const leastEntries = 512

// hugeFactor is by how much a folder that alone is beyond the limit may exceed it,
// so that scanning gets on. What comes behind that is never read.
const hugeFactor = 4

// Found is what a [Scan] knows.
type Found struct {
	Repositories []string // folders below the root to [Open], sorted: they hold .git or are bare repositories
	Complete     bool     // every folder was looked at by this call
	Stopped      string   // if not Complete: the first folder that was not looked at, or not to its end
	Scanned      int      // names read and folders checked by this call, as in Limit.Entries
}

// Scan looks for repositories in the folders below root, in breadth first. It does
// not follow symbolic links, and goes neither into a folder named .git nor into the
// inner folders of a bare repository; a git folder that a .git file elsewhere names
// looks like a bare one. The root itself is not in the result. A folder that
// cannot be read counts as empty, because git cannot read it either.
//
// With a cache Scan reads only folders that have changed since, and goes on where
// the last call stopped; repositories in folders that it did not come to are told
// as they were. A nil cache reads everything.
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
	begin := time.Now()
	root, err := filepath.Abs(root)
	if err != nil {
		return Found{Stopped: root}
	}
	at, err := follow(root, "")
	if err != nil || at.closed {
		return Found{Stopped: root}
	}
	if at.missing || !at.mode.IsDir() {
		return Found{Complete: true}
	}
	h, err := openRoot(at.real)
	if err != nil {
		return Found{Stopped: root}
	}
	defer h.close()
	s := scanner{handle: h, tree: c.tree(at.real), limit: limit, begin: begin}
	if len(s.folders) == 0 {
		s.folders = append(s.folders, folder{})
	}
	s.check()
	s.read()
	found := s.collect()
	c.changed = c.changed || s.changed || s.fresh >= freshEnough
	return found
}

// A scanner is one Scan.
type scanner struct {
	*tree
	handle  rootHandle
	limit   Limit
	begin   time.Time
	scanned int
	reads   int // folders read
	changed bool
	fresh   int  // what reading folders again, of which only the stamp is new, has cost
	stopped bool // check did not come around
	again   []int32

	heads, nexts []int32 // lists of the folders in each folder; -1 ends one
	names        []byte  // scratch: names of folders that were read, with their lengths
	seen         map[string]int32
}

// over reports whether one part of so many of the limit is used up.
func (s *scanner) over(part int) bool {
	if s.scanned >= s.limit.Entries/part || s.limit.Time < 0 {
		return true
	}
	return s.scanned >= leastEntries && time.Since(s.begin) >= s.limit.Time/time.Duration(part)
}

// freshEnough is when new stamps alone are worth a new file. The folder that every
// run makes something in has a new one each time, and to read that again costs less
// than to write down all the others.
const freshEnough = 16

// A seen is what a look at a folder has found.
type seen uint8

const (
	seenNot seen = iota
	seenSame
	seenChanged
	seenGone
)

// look compares one folder with its stamp.
func (s *scanner) look(f *folder) seen {
	st, isFolder, err := s.handle.stat(f.path)
	switch {
	case err != nil || !isFolder:
		return seenGone
	case f.state&stateRacy != 0 || st != f.stamp:
		return seenChanged
	}
	return seenSame
}

// ahead looks at the folders of a big tree on several processors: it is one call of
// the system for each, and most of what a start in a big tree costs. It returns what
// was seen in the order of check, up to the limit, and nil for a small tree.
func (s *scanner) ahead(first, part int) []seen {
	const block, most = 64, 4
	count, workers := len(s.folders), min(runtime.GOMAXPROCS(0), most)
	if workers < 2 || count < 4*block {
		return nil
	}
	found := make([]seen, count)
	var next, looked atomic.Int64
	work := func() {
		for {
			to := int(next.Add(block))
			if to-block >= count || int(looked.Load()) >= s.limit.Entries/part || time.Since(s.begin) >= s.limit.Time/time.Duration(part) {
				return
			}
			n := 0
			for k := to - block; k < min(to, count); k++ {
				if f := &s.folders[(first+k)%count]; f.state&(stateRead|stateGone) == stateRead {
					found[k] = s.look(f)
					n++
				}
			}
			looked.Add(int64(n))
		}
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return found
}

// check compares every folder that was read with its stamp, from where the last
// call left off.
func (s *scanner) check() {
	part := 1
	if slices.ContainsFunc(s.folders, func(f folder) bool { return f.state&stateRead == 0 }) {
		part = 2 // in a tree with more folders than the limit, reading gets on as well
	}
	count := len(s.folders)
	first := s.next
	s.next = 0
	ahead := s.ahead(first, part)
	for k := range count {
		i := (first + k) % count
		f := &s.folders[i]
		if f.state&stateRead == 0 || f.state&stateGone != 0 {
			continue
		}
		var saw seen
		// A clock costs a tenth of a call for one folder.
		stop := ahead == nil && k&15 == 0 && s.over(part)
		if ahead != nil {
			saw = ahead[k]
			stop = saw == seenNot || k&15 == 0 && s.scanned >= s.limit.Entries/part
		}
		if stop {
			s.next, s.stopped, s.changed = i, true, true
			return
		}
		s.scanned++
		if ahead == nil {
			saw = s.look(f)
		}
		switch saw {
		case seenGone:
			s.drop(int32(i))
		case seenChanged:
			f.state &^= stateRead
			s.again = append(s.again, int32(i))
		}
	}
}

// drop marks a folder that is no longer there. The root stays, empty.
func (s *scanner) drop(i int32) {
	s.changed = true
	s.folders[i].state |= stateGone
}

// read reads the folders that have changed, then those that were never read; what
// they hold comes at the end.
func (s *scanner) read() {
	slices.Sort(s.again)
	for _, i := range s.again {
		if !s.readOne(i) {
			return
		}
	}
	for i := 0; i < len(s.folders); i++ {
		if s.folders[i].state&(stateRead|stateGone) == 0 && !s.readOne(int32(i)) {
			return
		}
	}
}

// An entryKind is what a name in a folder stands for.
type entryKind uint8

const (
	kindUnknown entryKind = iota
	kindFile              // anything that is neither of the others
	kindFolder
	kindLink
)

// readOne reads one folder. It returns false if the limit does not let it.
func (s *scanner) readOne(i int32) bool {
	if s.over(1) {
		return false
	}
	before := s.scanned
	var marks marks
	enough := s.limit.Entries
	if s.reads == 0 {
		enough = before + hugeFactor*s.limit.Entries
	}
	s.names = s.names[:0]
	cut, now := false, nowStamp()
	path := s.folders[i].path
	st, err := s.handle.read(path, func(name []byte, kind entryKind) bool {
		s.scanned++
		if s.scanned > enough || s.reads > 0 && s.scanned >= leastEntries && s.scanned&255 == 0 && time.Since(s.begin) >= s.limit.Time {
			cut = true
			return false
		}
		if kind == kindUnknown && isFolder(filepath.Join(s.root, path, string(name))) {
			kind = kindFolder
		}
		if !marks.note(name) && kind == kindFolder {
			s.names = append(s.names, name...)
			s.names = append(s.names, 0) // no name has it
		}
		return true
	})
	if cut && s.reads > 0 {
		return false // it will be the first one next time
	}
	s.reads++
	if err != nil && st == (stamp{}) {
		s.drop(i)
		return true
	}
	state := stateRead
	if st.racy(now) {
		state |= stateRacy
	}
	if cut || err != nil && !errors.Is(err, fs.ErrPermission) {
		state |= stateHuge
	}
	if marks.link || marks.like && stands(filepath.Join(s.root, path, linkName)) {
		state |= stateRepo
	}
	if marks.bare() {
		state |= stateBare
	}
	f := &s.folders[i]
	const kept = stateRepo | stateBare | stateHuge
	same := f.stamp != stamp{} && f.state&kept == state&kept
	f.state, f.stamp = state, st
	switch same = !s.children(i, marks.bare()) && same; {
	case !same:
		s.changed = true
	case state&stateRacy == 0:
		const names = 64 // take about as long as finding the folder
		s.fresh += 1 + (s.scanned-before)/names
	}
	return true
}

func isFolder(path string) bool {
	mode, err := lstat(path)
	return err == nil && mode.IsDir()
}

// children makes the folders in folder i what s.names says, and reports whether that
// is news.
func (s *scanner) children(i int32, bare bool) (news bool) {
	s.link()
	known := s.heads[i] >= 0
	if known {
		if s.seen == nil {
			s.seen = map[string]int32{}
		}
		clear(s.seen)
		for k := s.heads[i]; k >= 0; k = s.nexts[k] {
			s.seen[filepath.Base(s.folders[k].path)] = k
		}
	}
	path := s.folders[i].path
	for start, end := 0, 0; end < len(s.names); end++ {
		if s.names[end] != 0 {
			continue
		}
		name := s.names[start:end]
		start = end + 1
		if bare && slices.Contains(innerFolders[:], string(name)) {
			continue
		}
		if known {
			if k, ok := s.seen[string(name)]; ok && s.folders[k].state&stateGone == 0 {
				delete(s.seen, string(name))
				continue
			}
		}
		child := string(name)
		if path != "" {
			child = path + string(filepath.Separator) + child
		}
		news = true
		s.nexts = append(s.nexts, s.heads[i])
		s.heads = append(s.heads, -1)
		s.heads[i] = int32(len(s.folders))
		s.folders = append(s.folders, folder{path: child, parent: i})
	}
	if known {
		for _, k := range s.seen {
			news = news || s.folders[k].state&stateGone == 0
			s.folders[k].state |= stateGone
		}
	}
	return news
}

// link makes the lists of folders in folders, once.
func (s *scanner) link() {
	if s.heads != nil {
		return
	}
	room := len(s.folders) + 256
	s.heads, s.nexts = make([]int32, len(s.folders), room), make([]int32, len(s.folders), room)
	for i := range s.heads {
		s.heads[i], s.nexts[i] = -1, -1
	}
	for i := 1; i < len(s.folders); i++ {
		p := s.folders[i].parent
		s.nexts[i], s.heads[p] = s.heads[p], int32(i)
	}
}

// collect returns what is known now, and forgets the folders that are gone.
func (s *scanner) collect() Found {
	found := Found{Complete: true, Scanned: s.scanned}
	stop := func(f *folder) {
		if found.Complete {
			found.Complete, found.Stopped = false, filepath.Join(s.root, f.path)
		}
	}
	gone := false
	for i := range s.folders {
		f := &s.folders[i]
		if i > 0 && s.folders[f.parent].state&stateGone != 0 {
			f.state |= stateGone
		}
		if f.state&stateGone != 0 {
			gone = true
			continue
		}
		if f.state&(stateRepo|stateBare) != 0 && i > 0 {
			found.Repositories = append(found.Repositories, filepath.Join(s.root, f.path))
		}
		if f.state&stateRead == 0 || f.state&stateHuge != 0 {
			stop(f)
		}
	}
	if s.stopped {
		stop(&s.folders[s.next])
	}
	if gone {
		s.compact()
	}
	slices.Sort(found.Repositories)
	return found
}

// compact takes out the folders that are gone.
func (s *scanner) compact() {
	moved := make([]int32, len(s.folders))
	kept, next := s.folders[:0], 0
	for i, f := range s.folders {
		if i == s.next {
			next = len(kept)
		}
		if f.state&stateGone != 0 {
			continue
		}
		moved[i] = int32(len(kept))
		f.parent = moved[f.parent]
		kept = append(kept, f)
	}
	clear(s.folders[len(kept):])
	s.folders, s.next = kept, next
	s.heads, s.nexts = nil, nil
}

// marks are the names in a folder by which git knows a repository.
type marks struct {
	link, like, head, objects, refs, common bool
}

// note takes a name and reports whether it is one that Scan does not go into.
func (m *marks) note(name []byte) bool {
	switch string(name) {
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
		if len(name) >= len(linkName) && linkLike(name) {
			m.like = true
		}
	}
	return false
}

// bare reports whether the folder is a git folder to git's is_git_directory.
func (m *marks) bare() bool {
	return m.head && (m.common || m.objects && m.refs)
}

// linkLike reports whether a file system that folds names may take the name for
// .git: another case, the short name of Windows, or letters that macOS leaves out.
// Whether it does is asked of the file system.
func linkLike(name []byte) bool {
	switch name[0] {
	case '.':
		if len(name) == len(linkName) {
			return strings.EqualFold(string(name), linkName)
		}
		return slices.ContainsFunc(name, func(c byte) bool { return c >= 0x80 })
	case 'g', 'G':
		return strings.EqualFold(string(name), "git~1")
	case 0xe2, 0xef: // the first byte of what macOS leaves out
		return true
	}
	return false
}

// innerFolders are the folders of a git folder that hold no work trees.
var innerFolders = [...]string{"objects", "refs", "hooks", "info", "logs", "modules", worktreesName, "lfs"}
