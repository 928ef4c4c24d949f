// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// A chain checks that lines follow each other.
type chain struct {
	tree
	prev   sum
	begun  bool
	loose  bool   // the hash of the last line is not known
	first  uint64 // the number of the first line
	begins uint64 // that which the first line must have, by the last segment
}

// next returns a line, and why it cannot be the next one. Head says that it is the first of a file. It is
// counted in any case.
func (c *chain) next(text []byte, head bool) (line, error) {
	l, err := parseLine(text)
	if !c.begun {
		if err == nil {
			err = c.begin(&l)
		}
	} else if err == nil {
		err = c.follows(&l)
	}
	if err == nil && head != (l.kind == kindSegment) {
		err = errors.New("it is not where a line of its kind belongs: the first line of a file, and no other, is a segment")
	}
	if err == nil && head {
		err = c.segment(&l)
	}
	return l, err
}

// count makes a line the last one, even if it is bad.
func (c *chain) count(l *line, text []byte) {
	if l.n > 0 {
		c.n = l.n - 1
	}
	if !c.begun {
		c.begun, c.first = true, c.n+1
	}
	if c.fits() {
		c.add(text)
	} else {
		c.n++
	}
	c.prev, c.loose = l.hash, l.hash == sum{}
}

// begin takes the first line, which knows the tree of those before.
func (c *chain) begin(l *line) error {
	var s segment
	if l.kind != kindSegment || json.Unmarshal(l.body, &s) != nil || !(&tree{l.n - 1, s.Edge}).fits() ||
		l.n == 1 && l.prev != (sum{}) {
		return fmt.Errorf("a log cannot begin with it: %s before it are missing", lines(1, l.n-1))
	}
	c.tree, c.prev = tree{l.n - 1, s.Edge}, l.prev
	return nil
}

func (c *chain) follows(l *line) error {
	switch {
	case l.n > c.n+1:
		return fmt.Errorf("%s before it are missing", lines(c.n+1, l.n-1))
	case l.n == c.n:
		return fmt.Errorf("line %d is there twice", l.n)
	case l.n < c.n+1:
		return fmt.Errorf("it was moved or is there twice: line %d comes before it", c.n)
	case l.prev != c.prev && !c.loose:
		return fmt.Errorf("it does not follow line %d: that line was replaced", c.n)
	}
	return nil
}

// segment checks the first line of a file.
func (c *chain) segment(l *line) error {
	var s segment
	if err := json.Unmarshal(l.body, &s); err != nil || s.Version != 1 {
		return errors.New("it is of a form that this version does not know")
	}
	if !slices.Equal(s.Edge, c.edge) {
		return errors.New("its edge is not that of the lines before it: one of them was replaced")
	}
	c.begins = s.Begins
	return nil
}

// lines names lines by their numbers.
func lines(first, last uint64) string {
	if first >= last {
		return fmt.Sprintf("line %d", last)
	}
	return fmt.Sprintf("lines %d to %d", first, last)
}

// A snapshot is a log at one moment.
type snapshot struct {
	dir   string
	files []*os.File // the oldest first; nil at the place of one that was removed
	names []string
	sizes []int64
	whole bool   // these are all files
	state []byte // of the file of the checkpoint
	ended bool   // the last file is the current one
}

// open opens the files of a log, or one of them. It waits for those who write.
func open(path string) (*snapshot, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	s := &snapshot{dir: path, whole: st.IsDir()}
	if !s.whole {
		s.dir = filepath.Dir(path)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	release, err := s.lock(root)
	if err != nil {
		return nil, err
	}
	defer release()
	if s.whole {
		all, err := (&store{dir: root}).rotated()
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			s.names = append(s.names, f.name)
		}
		if _, err := root.Lstat(currentName); err == nil {
			s.names = append(s.names, currentName)
		}
	} else {
		s.names = []string{filepath.Base(path)}
	}
	for _, name := range s.names {
		f, err := safefile.Open(filepath.Join(s.dir, name))
		if err == nil {
			s.files = append(s.files, f)
			st, err = f.Stat()
		}
		if err != nil {
			s.close()
			return nil, err
		}
		s.sizes = append(s.sizes, st.Size())
		s.ended = name == currentName
	}
	return s, nil
}

// lock reads the checkpoint under its lock. Where there is none, there is no lock.
func (s *snapshot) lock(root *os.Root) (release func(), err error) {
	f, err := root.OpenFile(checkpointName, os.O_RDONLY|safefile.NoWait, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if err = safefile.WaitLock(f); errors.Is(err, errors.ErrUnsupported) {
		err = nil // a copy on a file system without locks
	}
	if err == nil {
		s.state, err = readState(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func (s *snapshot) close() {
	for _, f := range s.files {
		f.Close()
	}
}
