// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The names of the files in the directory of a log.
const (
	currentName    = "audit.jsonl" // the last lines
	rotatedPrefix  = "audit-"      // and then the number of the first line, in ten digits
	rotatedExt     = ".jsonl"
	checkpointName = "checkpoint"
	keyName        = "key"
)

// stateSize is how large the file of the checkpoint is. It never grows, so that it can be written when
// the disk is full.
const stateSize = 4 << 10

// A file is what is written to; tests have some that fail.
type file interface {
	io.Writer
	io.WriterAt
	Truncate(size int64) error
	Sync() error
}

// A store is the directory of a log. One goroutine uses it at a time.
type store struct {
	dir        *os.Root
	keyFile    string
	maxSegment int64
	maxTotal   int64
	maxAge     time.Duration
	sync       bool
	wrap       func(*os.File) file // of tests; nil does nothing

	signer note.Signer // nil before it is used
	known  []byte      // what the file of the checkpoint had when this process wrote it; nil before
	left   cursor      // that this was made of
}

// prepare reads the key and makes a first signature, which takes longer than later ones. There is nothing
// to prepare where there is no key yet: it is made under the lock.
func (s *store) prepare() {
	if s.signer != nil {
		return
	}
	if _, err := os.Lstat(s.keyFile); err != nil {
		return
	}
	if signer, err := loadKey(s.keyFile); err == nil { // else sign returns why
		s.signer = signer
		_, _ = signer.Sign(nil) // it goes nowhere
	}
}

// An entry is what becomes a line.
type entry struct {
	time time.Time
	kind string
	body []byte
}

// A cursor is the end of a log, under the lock. Its exported members are what the file of the checkpoint
// keeps beside the checkpoint: the next writer need not read the lines.
type cursor struct {
	First  uint64    `json:"first"`  // the number of the first line of the current file
	Began  time.Time `json:"began"`  // the time of it
	Offset int64     `json:"offset"` // how large that file is
	N      uint64    `json:"n"`      // the number of the last line
	Prev   sum       `json:"prev"`   // its hash
	Edge   []sum     `json:"edge"`   // of the tree of all lines

	buf   []byte   // what is to be written; Offset is behind it
	ctl   *os.File // the checkpoint, which is locked
	cur   *os.File // nil where there is none
	old   []byte   // of ctl
	found []string // what is not as it was left
}

// A WriteError says that records could not be written. They are kept, and written later, as long as
// there are not too many.
type WriteError struct {
	Path string // of the file or directory
	Err  error
}

// Error returns one sentence with the fix.
func (e *WriteError) Error() string {
	return fmt.Sprintf("audit: cannot write to the audit log %s: %v; make room or set audit.path to a directory of yours",
		text.Word(e.Path), e.Err)
}

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

func (s *store) failed(name string, err error) error {
	if err == nil {
		return nil
	}
	if path := new(fs.PathError); errors.As(err, &path) {
		err = path.Err
	}
	return &WriteError{filepath.Join(s.dir.Name(), name), err}
}

// file is what a file is written through.
func (s *store) file(f *os.File) file {
	if s.wrap == nil {
		return f
	}
	return s.wrap(f)
}

// append writes lines, and returns how many are kept.
func (s *store) append(batch []entry) (kept int, err error) {
	c, err := s.lock()
	if err != nil {
		return 0, err
	}
	defer c.unlock()
	const most = 320 // of a line without its body
	size := 0
	for i := range batch {
		size += len(batch[i].body) + most
	}
	c.buf = make([]byte, 0, min(size, 1<<20))
	for kept < len(batch) {
		now := batch[kept].time
		if c.cur != nil && s.full(c, &batch[kept]) {
			if err := s.rotate(c, now); err != nil {
				return kept, err
			}
		}
		if err := s.open(c, now); err != nil {
			return kept, err
		}
		if len(c.found) > 0 {
			c.add(c.recovered(now))
		}
		n := kept
		for n < len(batch) && (n == kept || !s.full(c, &batch[n])) {
			c.add(&batch[n])
			n++
		}
		if err := s.commit(c); err != nil {
			return kept, err
		}
		kept = n
	}
	return kept, nil
}

// lock opens the files, waits for those who write, and finds the end of the log.
func (s *store) lock() (*cursor, error) {
	ctl, err := s.dir.OpenFile(checkpointName, os.O_RDWR|os.O_CREATE|safefile.NoWait, 0o600)
	if err != nil {
		return nil, s.failed(checkpointName, err)
	}
	c, err := s.locked(ctl)
	if err != nil {
		safefile.Unlock(ctl)
		return nil, errors.Join(err, ctl.Close())
	}
	return c, nil
}

func (s *store) locked(ctl *os.File) (*cursor, error) {
	if err := safefile.WaitLock(ctl); err != nil {
		return nil, err
	}
	old, err := readState(ctl)
	if err != nil {
		return nil, s.failed(checkpointName, err)
	}
	cur, size, err := s.current()
	if err != nil {
		return nil, s.failed(currentName, err)
	}
	c := s.cursorOf(old)
	if c == nil || c.Offset != size {
		c, err = s.recover(c, cur, len(old) > 0)
	}
	if err != nil {
		if cur != nil {
			cur.Close()
		}
		return nil, s.failed(currentName, err)
	}
	c.ctl, c.cur, c.old = ctl, cur, old
	return c, nil
}

// current opens the current file. There may be none.
func (s *store) current() (*os.File, int64, error) {
	cur, err := s.dir.OpenFile(currentName, os.O_RDWR|os.O_APPEND|safefile.NoWait, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	st, err := cur.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = safefile.ErrNotPlain
	}
	if err != nil {
		return nil, 0, errors.Join(err, cur.Close())
	}
	return cur, st.Size(), nil
}

// unlock ends the lock, and closes the files.
func (c *cursor) unlock() {
	safefile.Unlock(c.ctl)
	if c.cur != nil {
		c.cur.Close()
	}
	c.ctl.Close()
}

// readState reads the file of the checkpoint without what fills it up.
func readState(f io.ReaderAt) ([]byte, error) {
	b := make([]byte, stateSize)
	n, err := f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return bytes.TrimRight(b[:n], " \n\x00"), err
}

// splitState splits the file of the checkpoint into that and the end of the log, which is nil if it cannot
// be read.
func splitState(text []byte) (signed string, c *cursor) {
	i := bytes.LastIndexByte(text, '\n') + 1
	c = new(cursor)
	if json.Unmarshal(text[i:], c) != nil || !(&tree{c.N, c.Edge}).fits() || c.N == 0 {
		c = nil
	}
	return string(text[:i]), c
}

// cursorOf is the end of the log that the file of the checkpoint tells; nil if it cannot be read. What this
// process has written need not be read again.
func (s *store) cursorOf(text []byte) *cursor {
	if s.known == nil || !bytes.Equal(text, s.known) {
		_, c := splitState(text)
		return c
	}
	c := s.left
	c.Edge = slices.Clone(c.Edge)
	return &c
}

// full reports whether an entry belongs into a new file. One line is always taken.
func (s *store) full(c *cursor, e *entry) bool {
	if c.N <= c.First {
		return false
	}
	const most = 256 // of a line without its body
	return c.Offset+int64(len(e.body))+most > s.maxSegment ||
		s.maxAge > 0 && e.time.Sub(c.Began) > s.maxAge
}

// add puts an entry behind the others.
func (c *cursor) add(e *entry) {
	start := len(c.buf)
	c.buf, c.Prev = appendLine(c.buf, line{n: c.N + 1, prev: c.Prev, time: e.time, kind: e.kind, body: e.body})
	c.grow(c.buf[start : len(c.buf)-1])
	c.Offset += int64(len(c.buf) - start)
}

// grow counts a line.
func (c *cursor) grow(text []byte) {
	t := tree{c.N, c.Edge}
	t.add(text)
	c.N, c.Edge = t.n, t.edge
}

// A segment is the body of the first line of a file.
type segment struct {
	Version int    `json:"v"`      // of the form of lines: 1
	Edge    []sum  `json:"edge"`   // of the tree of all lines before
	Begins  uint64 `json:"begins"` // the number of the first line of the log: older ones were removed
}

// open makes the current file if there is none, and begins it if it is empty.
func (s *store) open(c *cursor, now time.Time) error {
	if c.cur != nil && c.Offset > 0 {
		return nil
	}
	all, err := s.rotated()
	if err != nil {
		return s.failed(currentName, err)
	}
	old, rest := s.expired(all, now)
	first := segment{Version: 1, Edge: append([]sum{}, c.Edge...), Begins: c.N + 1}
	if len(rest) > 0 {
		first.Begins = rest[0].first
	}
	body, err := json.Marshal(first)
	if err != nil {
		return err
	}
	if c.cur == nil {
		const flags = os.O_RDWR | os.O_APPEND | os.O_CREATE | os.O_EXCL | safefile.NoWait
		if c.cur, err = s.dir.OpenFile(currentName, flags, 0o600); err != nil {
			return s.failed(currentName, err)
		}
	}
	c.First, c.Began, c.Offset = c.N+1, now, 0
	c.add(&entry{now, kindSegment, body})
	if err := s.commit(c); err != nil {
		return err
	}
	for _, f := range old { // what cannot be removed is tried again with the next file
		_ = s.dir.Remove(f.name)
	}
	return nil
}

// rotate ends the current file with a checkpoint, and gives it the name of its first line.
func (s *store) rotate(c *cursor, now time.Time) error {
	signed, err := s.sign(c, now)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"note": signed})
	if err != nil {
		return err
	}
	c.add(&entry{now, kindCheckpoint, body})
	if err := s.commit(c); err != nil {
		return err
	}
	name := rotatedName(c.First)
	if _, err := s.dir.Lstat(name); err == nil {
		return s.failed(name, errors.New("a file of an older log is there; move that log away"))
	}
	if err := s.dir.Rename(currentName, name); err != nil {
		return s.failed(name, err)
	}
	err = c.cur.Close()
	c.cur = nil
	return err
}

func rotatedName(first uint64) string {
	return fmt.Sprintf("%s%010d%s", rotatedPrefix, first, rotatedExt)
}

// A rotatedFile is a file of a log that is not written to any more.
type rotatedFile struct {
	name  string
	first uint64 // the number of its first line
	size  int64
	time  time.Time // of the last change
}

// rotated returns the rotated files, the oldest first.
func (s *store) rotated() ([]rotatedFile, error) {
	entries, err := fs.ReadDir(s.dir.FS(), ".")
	if err != nil {
		return nil, err
	}
	var all []rotatedFile
	for _, e := range entries {
		first, ok := firstOf(e.Name())
		if !ok {
			continue
		}
		if st, err := e.Info(); err == nil && st.Mode().IsRegular() {
			all = append(all, rotatedFile{e.Name(), first, st.Size(), st.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b rotatedFile) int {
		if a.first < b.first {
			return -1
		}
		return 1 // no two are equal
	})
	return all, nil
}

// firstOf returns the number in the name of a rotated file.
func firstOf(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, rotatedPrefix)
	digits, ok2 := strings.CutSuffix(digits, rotatedExt)
	first, err := strconv.ParseUint(digits, 10, 64)
	return first, ok && ok2 && err == nil && rotatedName(first) == name
}

// expired splits the rotated files into those that are removed and those that stay, when the current
// file may get as large as it can.
func (s *store) expired(all []rotatedFile, now time.Time) (old, rest []rotatedFile) {
	total := s.maxSegment
	for _, f := range all {
		total += f.size
	}
	n := 0
	for n < len(all) && (total > s.maxTotal || s.maxAge > 0 && now.Sub(all[n].time) > s.maxAge) {
		total -= all[n].size
		n++
	}
	return all[:n], all[n:]
}

// sign returns a checkpoint of all lines, also of those that are to be written.
func (s *store) sign(c *cursor, now time.Time) (string, error) {
	if s.signer == nil {
		signer, err := loadKey(s.keyFile)
		if err != nil {
			return "", err
		}
		s.signer = signer
	}
	t := tree{c.N, c.Edge}
	text := (&checkpoint{s.signer.Name(), c.N, t.root(), now}).text()
	signed, err := note.Sign(&note.Note{Text: text}, s.signer)
	return string(signed), err
}

// commit writes the lines, and then what they make of the checkpoint. After an error nothing of both is
// there, unless the disk is worse than full.
func (s *store) commit(c *cursor) error {
	signed, err := s.sign(c, time.Now())
	if err != nil {
		return err
	}
	state, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cur, ctl := s.file(c.cur), s.file(c.ctl)
	name := currentName
	_, err = cur.Write(c.buf)
	if err == nil && s.sync {
		err = cur.Sync()
	}
	if err == nil {
		name = checkpointName
		state = append([]byte(signed), state...)
		if err = writeState(ctl, state); err != nil {
			_ = writeState(ctl, c.old) // the cause is returned
		}
	}
	if err != nil {
		_ = cur.Truncate(c.Offset - int64(len(c.buf))) // else the next writer finds out
		return s.failed(name, err)
	}
	c.buf, c.old = c.buf[:0], state
	s.known, s.left = state, cursor{First: c.First, Began: c.Began, Offset: c.Offset, N: c.N, Prev: c.Prev,
		Edge: slices.Clone(c.Edge)}
	if s.sync {
		return s.failed(name, ctl.Sync())
	}
	return nil
}

// writeState replaces what the file of the checkpoint has.
func writeState(f file, state []byte) error {
	if len(state) >= stateSize {
		return errors.New("it is too long")
	}
	b := bytes.Repeat([]byte(" "), stateSize)
	b[copy(b, state)] = '\n'
	_, err := f.WriteAt(b, 0)
	return err
}
