// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Scans remembers what earlier searches for deny patterns and for secrets found, in memory and
// below State. Several goroutines may use it at once.
type Scans struct {
	State string // the state directory

	matching sync.Mutex // held while files are searched for deny patterns
	matches  map[string]*git.Matches

	knowing sync.Mutex // held while home directories are searched for secrets
	secret  map[string]*grants.KnownSecrets
}

// maxFiles is how many searches are remembered on disk. Each takes up to a few megabytes.
const maxFiles = 100

// prune removes the oldest files of a directory that has more than most. Their searches begin anew.
func prune(dir string, most int) {
	entries, _ := os.ReadDir(dir) // what cannot be listed stays
	if len(entries) <= most {
		return
	}
	age := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			age[e.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return age[a.Name()].Compare(age[b.Name()]) })
	for _, e := range entries[:len(entries)-most] {
		_ = os.Remove(filepath.Join(dir, e.Name()))
	}
}

// maxSearches is how many searches for deny patterns are remembered in memory.
const maxSearches = 16

// match is [git.Match] with what earlier runs have found. A nil Scans searches anew.
func (s *Scans) match(root, key string, want git.Wanted, most int) ([]string, error) {
	if s == nil {
		return matchAnew(root, key, want, most)
	}
	s.matching.Lock()
	defer s.matching.Unlock()
	m := s.matches[key]
	if m == nil {
		m = new(git.Matches)
		s.file("matches\x00"+key, func(name string) { m = git.LoadMatches(name) })
		if s.matches == nil || len(s.matches) >= maxSearches {
			s.matches = make(map[string]*git.Matches)
		}
		s.matches[key] = m
	}
	found, err := git.Match(root, key, m, want, most)
	if m.Changed() {
		s.file("matches\x00"+key, func(name string) { _ = m.Save(name); prune(filepath.Dir(name), maxFiles) })
	}
	return found, err
}

// secrets returns the stores of secrets that a search by content finds below a home directory, with what
// earlier runs have found. A nil Scans searches anew.
func (s *Scans) secrets(home string) []grants.Store {
	if s == nil {
		return searchAnew(home)
	}
	s.knowing.Lock()
	defer s.knowing.Unlock()
	k := s.secret[home]
	if k == nil {
		k = new(grants.KnownSecrets)
		s.file("secrets\x00"+home, func(name string) {
			if text, err := safefile.ReadSystem(name); err == nil {
				k = grants.ReadKnownSecrets(text)
			}
		})
		if s.secret == nil {
			s.secret = make(map[string]*grants.KnownSecrets)
		}
		s.secret[home] = k
	}
	found, _ := k.Search(home)
	if k.Changed() {
		s.file("secrets\x00"+home,
			func(name string) { _ = safefile.Replace(name, k.Bytes()); prune(filepath.Dir(name), maxFiles) })
	}
	return found
}

// first reports whether it is asked about a subject for the first time, as far as that can be
// remembered. A nil Scans remembers nothing.
func (s *Scans) first(subject string) bool {
	first := true
	if s != nil {
		s.file(subject, func(name string) {
			fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
			if first = !errors.Is(err, fs.ErrExist); err == nil {
				unix.Close(fd)
				prune(filepath.Dir(name), maxFiles)
			}
		})
	}
	return first
}

// file calls f with the name of the file about a subject, by descriptor: the state directory may
// lie where another command can exchange it. Without that directory nothing is called.
func (s *Scans) file(subject string, f func(name string)) {
	dir, err := s.open("scans")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	sum := sha256.Sum256([]byte(subject))
	f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.FD, hex.EncodeToString(sum[:16])))
}

// Copy returns a file of the state directory with a text, which no command sees unless it is mounted. It is
// made unless an earlier run has made it.
func (s *Scans) Copy(text []byte) (plan.Spot, error) {
	sum := sha256.Sum256(text)
	name := hex.EncodeToString(sum[:16])
	at := filepath.Join(s.State, "copies", name)
	if spot, err := hostfacts.Look(at); err == nil && spot.Kind == plan.KindFile {
		return spot, nil
	}
	dir, err := s.open("copies")
	if err != nil {
		return plan.Spot{}, err
	}
	defer func() { _ = dir.Close() }()
	path := fmt.Sprintf("/proc/self/fd/%d", dir.FD)
	prune(path, maxFiles)
	if err := safefile.Replace(filepath.Join(path, name), text); err != nil {
		return plan.Spot{}, err
	}
	return hostfacts.Look(at)
}

// open opens a directory of files.
func (s *Scans) open(name string) (*safefile.Own, error) {
	state, err := safefile.OpenOwn(s.State)
	if err != nil {
		return nil, err
	}
	defer func() { _ = state.Close() }()
	return state.Make(name)
}
