// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

const (
	// maxAge is how long a log is kept.
	maxAge = 24 * time.Hour
	// olderExt ends the name of the file with what is before the file of a log.
	olderExt = ".old"
)

// maxTotal is about how many bytes all logs have; the oldest ones go first. It is a variable for tests.
var maxTotal int64 = 1 << 30

// A Record says what a log is of. Its member names stay.
type Record struct {
	Kind       string    `json:"kind"` // a word of who makes it
	Session    string    `json:"session,omitempty"`
	Credential string    `json:"credential"`
	ID         string    `json:"id"`
	Argv       []string  `json:"argv"`
	Dir        string    `json:"cwd,omitempty"`
	TTY        bool      `json:"tty"`
	Level      string    `json:"level"` // of the sandbox
	Started    time.Time `json:"started"`
}

// A Store has the logs of a directory, which one process uses at a time. Its methods may be called from
// several goroutines at once. A nil Store keeps nothing.
type Store struct {
	root *os.Root
	left []*Left
	size atomic.Int64 // about that of all logs
}

// Open opens a directory, which is made with mode 0700, and removes logs that are too old, or too many.
func Open(dir string) (*Store, error) {
	root, err := safefile.MakeDirs(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{root: root}
	for _, name := range s.tidy() {
		l := &Left{store: s, name: name}
		if text, err := s.recordOf(name); err == nil && json.Unmarshal(text, &l.Record) == nil {
			s.left = append(s.left, l)
		}
	}
	return s, nil
}

// recordOf reads the record of a log.
func (s *Store) recordOf(name string) ([]byte, error) {
	file, err := s.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f, err := readFrame(file)
	return f.Data, err
}

// tidy removes logs that are too old, or too many, and returns the names of the others, the oldest first. One
// that is being written is gone with its file.
func (s *Store) tidy() (names []string) {
	entries, _ := fs.ReadDir(s.root.FS(), ".") // what cannot be read stays
	slices.Reverse(entries)                    // names begin with the time
	oldest, size := nameOf(time.Now().Add(-maxAge)), int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it was removed meanwhile
		}
		size += info.Size()
		switch name, older := strings.CutSuffix(e.Name(), olderExt); {
		case name < oldest || size > maxTotal:
			_ = s.root.Remove(e.Name()) // the next call tries again
			size -= info.Size()
		case !older:
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	s.size.Store(size)
	return names
}

// nameOf returns the beginning of the names of the logs of a time. They sort as the times do.
func nameOf(t time.Time) string { return fmt.Sprintf("%020d-", t.UnixNano()) }

// Dir is the directory; empty for nil.
func (s *Store) Dir() string {
	if s == nil {
		return ""
	}
	return s.root.Name()
}

// Close closes the directory. The logs stay.
func (s *Store) Close() error { return s.root.Close() }

// Left returns the logs that processes before this one have left, the oldest first.
func (s *Store) Left() (left []*Left) {
	if s == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.left), func(l *Left) bool { return l.removed.Load() })
}

// Create makes a log. Nil is one that keeps nothing, also where the disk takes nothing.
func (s *Store) Create(r Record) *Log {
	if s == nil {
		return nil
	}
	if s.size.Load() > maxTotal {
		s.tidy()
	}
	l := &Log{store: s, name: nameOf(time.Now()) + rand.Text()}
	l.header, _ = json.Marshal(r) // such values always encode
	if l.create() != nil {
		return nil
	}
	return l
}

// A Left is a log that a process before this one has left.
type Left struct {
	Record
	store   *Store
	name    string
	removed atomic.Bool
}

// Remove removes the log.
func (l *Left) Remove() {
	l.removed.Store(true)
	l.store.remove(l.name)
}

func (s *Store) remove(name string) {
	for _, name := range []string{name, name + olderExt} {
		_ = s.root.Remove(name) // what stays goes with its age
	}
}

// Read calls f with each frame that is there, until one is not complete: what a process that was killed has
// written of the last one.
func (l *Left) Read(f func(Frame)) error {
	for _, name := range []string{l.name + olderExt, l.name} {
		file, err := l.store.root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for r := bufio.NewReader(file); err == nil; {
			var frame Frame
			if frame, err = readFrame(r); err == nil && frame.Kind != record {
				f(frame)
			}
		}
		_ = file.Close() // it was read
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
	}
	return nil
}
