// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Limit bounds one [Scan]. The zero value means the defaults; a negative number
// lets nothing be read.
type Limit struct {
	Entries int           // names read; 0: DefaultEntries
	Time    time.Duration // 0: DefaultTime; the first 512 names are free
	Skip    []string      // directories that are not looked at, without symbolic links; nil is none
}

// Defaults of a [Limit]: what a user does not notice at the start of a command.
const (
	DefaultEntries = 20_000
	DefaultTime    = 15 * time.Millisecond
)

// freeEntries are looked at whatever the time says, in about a millisecond: a busy
// machine searches a small tree whole.
const freeEntries = 512

// Found is the result of a [Scan].
type Found struct {
	// directories below the root to [Open], sorted: they contain .git or are bare repositories
	Repositories []string
	Shut         []string // directories that may not be listed, sorted: what is in them is not known
	Complete     bool     // every directory has been read
	Stopped      string   // if not Complete: the first directory that was not read, or not to its end
	Scanned      int      // names read
}

// Scan looks for repositories in the directories below root, breadth first. It does
// not follow symbolic links, and enters neither a directory named .git nor the inner
// directories of a bare repository; a git directory that a .git file elsewhere names
// looks like a bare one. The root itself is not in the result. A directory of a file system
// that holds no files, such as /proc, counts as empty.
func Scan(root string, limit Limit) Found {
	if limit.Entries == 0 {
		limit.Entries = DefaultEntries
	}
	if limit.Time == 0 {
		limit.Time = DefaultTime
	}
	begin := time.Now()
	at, err := followAbs(root)
	if err != nil || at.closed {
		return Found{Stopped: root}
	}
	if at.missing || !at.mode.IsDir() {
		return Found{Complete: true}
	}
	t, err := openTree(at.real)
	if err != nil {
		return Found{Stopped: root}
	}
	defer t.close()
	s := scanner{Found: Found{Complete: true}, root: at.real, tree: t, limit: limit, begin: begin,
		dirs: []string{""}, empty: map[uint64]bool{}}
	for i := 0; i < len(s.dirs); i++ {
		if s.over() || s.read(s.dirs[i]) {
			s.stop(s.dirs[i])
			break
		}
	}
	slices.Sort(s.Repositories)
	slices.Sort(s.Shut)
	return s.Found
}

// A scanner is one Scan.
type scanner struct {
	Found
	root   string
	tree   tree
	limit  Limit
	begin  time.Time
	dirs   []string        // relative to the root; a directory comes after the one that it is in
	device uint64          // of the root
	empty  map[uint64]bool // other devices, and whether they hold no files
}

// over reports whether the limit is reached.
func (s *scanner) over() bool {
	return s.Scanned >= s.limit.Entries || s.limit.Time < 0 || s.Scanned >= freeEntries &&
		time.Since(s.begin) >= s.limit.Time
}

// stop notes the first directory that was not read to its end.
func (s *scanner) stop(path string) {
	if s.Complete {
		s.Complete, s.Stopped = false, filepath.Join(s.root, path)
	}
}

// read reads one directory, and reports whether the limit has cut its names off.
func (s *scanner) read(path string) (cut bool) {
	if len(s.limit.Skip) > 0 && slices.Contains(s.limit.Skip, filepath.Join(s.root, path)) {
		return false
	}
	st, mode, err := s.tree.stat(path)
	if err != nil || !mode.IsDir() {
		return false // it has gone since
	}
	if path == "" {
		s.device = st.device
	}
	if s.holdsNoFiles(path, st.device) {
		return false
	}
	m, names, cut, err := s.names(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		s.Shut = append(s.Shut, filepath.Join(s.root, path))
	case err != nil && (path == "" || !absent(err)): // else it has gone, as the mount points of other runs
		s.stop(path)
	}
	if path != "" && (m.bare() || m.link || m.like && exists(filepath.Join(s.root, path, linkName))) {
		s.Repositories = append(s.Repositories, filepath.Join(s.root, path))
	}
	for _, name := range names {
		if !m.bare() || !inner(name) {
			s.dirs = append(s.dirs, strings.TrimPrefix(path+string(filepath.Separator)+name,
				string(filepath.Separator)))
		}
	}
	return cut
}

// holdsNoFiles reports whether a directory is of another file system than the root, and of
// one that only shows what the kernel knows, or would mount something.
func (s *scanner) holdsNoFiles(path string, device uint64) bool {
	if device == s.device {
		return false
	}
	none, known := s.empty[device]
	if !known {
		none = s.tree.holdsNoFiles(path)
		s.empty[device] = none
	}
	return none
}

// names reads the names in a directory, and reports whether the limit has cut
// them off. The names returned are of directories to go into.
func (s *scanner) names(path string) (m marks, dirs []string, cut bool, err error) {
	f, err := s.tree.open(path)
	if err != nil {
		return m, nil, false, err
	}
	defer f.Close()
	err = readDir(f, func(entry fs.DirEntry) bool {
		if s.Scanned >= s.limit.Entries || s.Scanned&255 == 255 && s.over() {
			cut = true
			return false
		}
		s.Scanned++
		if !m.note(entry.Name()) && entry.IsDir() {
			dirs = append(dirs, entry.Name())
		}
		return true
	})
	return m, dirs, cut, err
}

// inner reports whether a directory in a git directory contains no work trees.
func inner(path string) bool {
	switch filepath.Base(path) {
	case "objects", "refs", "hooks", "info", "logs", "modules", worktreesName, "lfs":
		return true
	}
	return false
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
	return exists(join(dir, headName)) && (exists(join(dir, commonName)) || exists(join(dir, "objects")) &&
		exists(join(dir, "refs")))
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
		return strings.EqualFold(name, linkName) ||
			strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 })
	case 'g', 'G':
		return strings.EqualFold(name, "git~1")
	case 0xe2, 0xef: // the first byte of what macOS leaves out
		return true
	}
	return false
}
