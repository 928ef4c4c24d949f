// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grants

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Search looks below a home directory, and returns the paths of the stores that it finds, and whether
// it could look at everything within its bounds. It follows no link and waits for nothing.
func (k *KnownSecrets) Search(home string) (found []Store, complete bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fd, err := unix.Open(home, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
	}
	defer unix.Close(fd)
	now := time.Now().UnixNano()
	if k.home == nil || now-k.since > int64(maxAge) || now < k.since {
		k.home, k.since, k.changed = new(node), now, true
	}
	s := &seeking{known: k, fd: fd, home: home, now: now, directories: mostDirectories, names: mostNames,
		looks: mostLooks}
	s.choose()
	s.visitAll()
	return s.found, !s.partial
}

// seeking is one search.
type seeking struct {
	known   *KnownSecrets
	fd      int // of the home
	home    string
	now     int64
	found   []Store
	partial bool

	directories, names, looks int // that are left
	// Of what lies deeper, these are looked at: those with the numbers from first on, and as many as
	// wrapped at the beginning. At is the number of the next one.
	first, wrapped, at int
}

// choose chooses what is looked at.
func (s *seeking) choose() {
	total := 0
	for queue := []*node{s.known.home}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if n.depth > 1 {
			total++
		}
		total += len(n.files)
		for i := range n.dirs {
			queue = append(queue, &n.dirs[i])
		}
	}
	if total > mostDeeper {
		s.first = rand.IntN(total)
		s.wrapped = s.first + mostDeeper - total
	}
}

// chosen reports whether the next one of what lies deeper is looked at.
func (s *seeking) chosen() bool {
	i := s.at
	s.at++
	return i >= s.first && i < s.first+mostDeeper || i < s.wrapped
}

// visitAll looks at directories, those higher up first.
func (s *seeking) visitAll() {
	for queue := []*node{s.known.home}; len(queue) > 0; queue = queue[1:] {
		if s.directories--; s.directories < 0 {
			s.partial = true
			return
		}
		n := queue[0]
		s.visit(n)
		for i := range n.dirs {
			queue = append(queue, &n.dirs[i])
		}
	}
}

// visit looks at one directory and at the candidates in it.
func (s *seeking) visit(n *node) {
	if n.depth < 2 || s.chosen() || n.stamp == (stamp{}) {
		var st unix.Stat_t
		if unix.Fstatat(s.fd, at(n.path), &st, unix.AT_SYMLINK_NOFOLLOW) != nil ||
			st.Mode&unix.S_IFMT != unix.S_IFDIR {
			n.stamp, n.files, n.dirs = stamp{}, nil, nil // it is gone; the one above has changed
			return
		}
		// Its owner can open it again.
		if n.path != "" && n.path[0] == '.' && st.Mode&0o500 != 0o500 &&
			int(st.Uid) == os.Geteuid() && st.Uid != 0 {
			n.stamp, n.files, n.dirs = stamp{}, nil, nil
			s.found = append(s.found, Store{Name: other, Path: filepath.Join(s.home, n.path)})
			return
		}
		if now := stampOf(&st); n.stamp != now {
			s.read(n)
			n.stamp = now
			if s.now-now.changed < racyTime {
				n.stamp = stamp{} // it may change once more at the same time
			}
		}
	}
	for i := range n.files {
		f := &n.files[i]
		if s.chosen() || f.stamp == (stamp{}) {
			s.look(f)
		}
		if f.secret {
			name := other
			if f.copyOf != "" {
				name = table()[f.copyOf]
			}
			s.found = append(s.found, Store{Name: name, Path: filepath.Join(s.home, f.path)})
		}
	}
}

// at is a path below the home for system calls.
func at(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// read reads the names in a directory. What was known of those that are still there is kept.
func (s *seeking) read(n *node) {
	s.known.changed = true
	old := *n
	n.files, n.dirs = nil, nil
	fd, err := unix.Openat(s.fd, at(n.path),
		unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return // nor can a command list it
	}
	dir := os.NewFile(uintptr(fd), n.path)
	defer dir.Close()
	entries, err := dir.ReadDir(max(s.names, 1))
	if s.names -= len(entries); s.names <= 0 || err != nil && !errors.Is(err, io.EOF) {
		s.partial = true
	}
	for _, e := range entries {
		path := e.Name()
		if n.path != "" {
			path = n.path + "/" + path
		}
		switch {
		case e.IsDir():
			if of := original(path); of != "" {
				n.files = append(n.files, old.candidate(path, of))
			} else if deeper(path, n.depth) {
				n.dirs = append(n.dirs, old.directory(path))
			}
		case e.Type().IsRegular():
			if _, known := table()[path]; known {
				continue
			}
			if of := original(path); of != "" || isPrivateAt(fd, e.Name()) {
				n.files = append(n.files, old.candidate(path, of))
			}
		}
	}
}

// deeper reports whether a directory at a path below the home is searched, which lies in one so deep.
func deeper(path string, depth int) bool {
	if _, known := table()[path]; known || unsearched()[path] {
		return false
	}
	switch name := filepath.Base(path); {
	case name == ".git" || name == "node_modules" || name == "Cache" || name == "Code Cache" ||
		name == "GPUCache" || name == "CachedData":
		return false
	case depth == 0:
		return true
	case path[0] != '.':
		return false
	}
	most := searchDepth
	for _, dir := range []string{".config/", ".local/share/", ".local/state/"} {
		if strings.HasPrefix(path, dir) {
			most++
		}
	}
	return depth+1 < most
}

// isPrivateAt is isPrivate for a name in a directory.
func isPrivateAt(dir int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && isPrivate(&st)
}

// isPrivate reports whether only its owner can read a file, which is long enough for a secret.
func isPrivate(st *unix.Stat_t) bool {
	const least = 16 // bytes
	return st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o077 == 0 && st.Size >= least
}

func (n *node) directory(path string) node {
	for i := range n.dirs {
		if n.dirs[i].path == path {
			return n.dirs[i]
		}
	}
	return node{path: path, depth: n.depth + 1}
}

func (n *node) candidate(path, of string) candidate {
	for _, f := range n.files {
		if f.path == path && f.copyOf == of {
			return f
		}
	}
	return candidate{path: path, copyOf: of}
}

// look looks into a file, unless it is as it was.
func (s *seeking) look(f *candidate) {
	var st unix.Stat_t
	if unix.Fstatat(s.fd, f.path, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		f.secret, f.stamp = false, stamp{} // it is gone
		return
	}
	now := stampOf(&st)
	if f.stamp == now {
		return
	}
	if s.looks--; s.looks < 0 {
		s.partial = true
		return
	}
	s.known.changed = true
	f.stamp, f.secret = now, s.holds(f, &st)
	if s.now-now.changed < racyTime {
		f.stamp = stamp{}
	}
}

// holds reports whether a file is a store.
func (s *seeking) holds(f *candidate, st *unix.Stat_t) bool {
	if kind := st.Mode & unix.S_IFMT; f.copyOf != "" {
		return kind == unix.S_IFREG || kind == unix.S_IFDIR
	}
	if !isPrivate(st) {
		return false
	}
	text, err := begin(filepath.Join(s.home, f.path), lookSize)
	return err == nil && HasSecret(text) // what cannot be opened cannot be opened by a command either
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{changed: unix.TimespecToNsec(st.Ctim), inode: uint64(st.Ino)} //nolint:unconvert // it is smaller on some systems
}
