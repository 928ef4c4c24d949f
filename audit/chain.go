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

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// A chain checks that lines follow each other.
type chain struct {
	tree
	prev   sum
	first  uint64 // the number of the first line; 0 before it
	begins uint64 // that which the first line must have, by the last segment
	loose  bool   // the hash of the last line is not known
	plain  bool   // the tree is not asked for
}

// next returns a line, and why it cannot be the next one. Head says that it is the first of a file.
func (c *chain) next(text []byte, head bool) (line, error) {
	l, err := parseLine(text)
	if err == nil {
		err = c.follows(&l)
	} else if c.first > 0 {
		l.n = c.n + 1 // whatever it says
	}
	if err == nil && head != (l.kind == kindSegment) {
		err = errors.New("it is not where it belongs: the first line of a file, and no other, is a segment")
	}
	if err == nil && head {
		err = c.segment(&l)
	}
	return l, err
}

// count makes a line the last one. A bad one may be counted where the tree is not asked for.
func (c *chain) count(l *line, text []byte) {
	if c.plain {
		c.n = max(c.n, l.n)
	} else {
		c.add(text)
	}
	c.prev, c.loose = l.hash, l.n < c.n || l.hash == sum{}
	if c.first == 0 {
		c.first = max(c.n, 1)
	}
}

// follows checks the number and the hash of the line before. A log begins with any number: older lines were
// removed.
func (c *chain) follows(l *line) error {
	switch {
	case c.first == 0 && (l.kind != kindSegment || (l.n == 1) != (l.prev == sum{})):
		return errors.New("a log cannot begin with it: what comes before it is missing")
	case c.first == 0:
		return nil
	case l.n > c.n+1:
		return fmt.Errorf("%s before it %s missing", lines(c.n+1, l.n-1), verb(c.n+1, l.n-1))
	case l.n == c.n:
		return fmt.Errorf("line %d is there twice", l.n)
	case l.n < c.n:
		return fmt.Errorf("it was moved or is there twice: line %d comes before it", c.n)
	case l.prev != c.prev && !c.loose:
		return fmt.Errorf("it does not follow line %d: that line was replaced", c.n)
	}
	return nil
}

// segment checks the first line of a file, which knows the tree of the lines before.
func (c *chain) segment(l *line) error {
	var s segment
	if err := json.Unmarshal(l.body, &s); err != nil || s.Version != 1 || !(&tree{l.n - 1, s.Edge}).fits() {
		return errors.New("it is of a form that this version does not know")
	}
	if c.first == 0 {
		c.tree = tree{l.n - 1, s.Edge}
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

// verb is what goes with lines.
func verb(first, last uint64) string {
	if first >= last {
		return "is"
	}
	return "are"
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
	return func() { safefile.Unlock(f); f.Close() }, nil
}

func (s *snapshot) close() {
	for _, f := range s.files {
		f.Close()
	}
}
