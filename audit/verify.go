// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// VerifyOptions say what a log must fit. The zero VerifyOptions take the verifier key beside the log, which
// a user who can change the log can change too.
type VerifyOptions struct {
	// Keys are the texts of verifier keys. Each checkpoint must be signed by one of them. Nil means that of
	// the file key.pub in the directory of the log.
	Keys []string
	// Checkpoint is the text of a checkpoint that was kept elsewhere; empty for none.
	Checkpoint string
}

// A Report says what a log has that holds.
type Report struct {
	Files int `json:"files"`
	// First and Last are the numbers of the first and last lines, 0 for a log without lines. Older ones
	// than First were removed because of the bounds of the log.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Signed is the number of the last line that a checkpoint covers, and SignedAt is when it was signed.
	// Lines after it were written by a writer that was killed then, or not by one of ours.
	Signed      uint64    `json:"signed"`
	SignedAt    time.Time `json:"signed_at"`
	Checkpoints int       `json:"checkpoints"` // how many hold
	// Notes say what writers found that was not as it was left, and what was lost, one clause each.
	Notes []string `json:"notes,omitempty"`
}

// A BrokenError says where a log was changed.
type BrokenError struct {
	File string // its path
	Line int    // in the file, from 1; 0 for the file as a whole
	N    uint64 // the number of the line in the log; 0 if it is not known
	Why  string // a clause
}

// Error returns the place and the reason.
func (e *BrokenError) Error() string {
	at := text.Word(e.File)
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	if e.N > 0 {
		at += fmt.Sprintf(": line %d of the log", e.N)
	}
	return at + ": " + e.Why
}

// ErrNoKey says that there is no key to verify a log with.
var ErrNoKey = errors.New("audit: there is no verifier key beside the log; give the one that was kept elsewhere (--key)")

// A verifier is one verification.
type verifier struct {
	chain
	report   Report
	keys     note.Verifiers
	file     string // where it is
	line     int
	expected []expected
	last     string // the kind of the last line
}

// An expected is a checkpoint that is compared when its line is reached.
type expected struct {
	*checkpoint
	file string // of it; empty for that of the caller
}

// Verify reads a log, or one file of it, and returns what holds, or a [*BrokenError] about the first thing
// that does not. An empty path means [DefaultDir]. Other errors say that it could not be read, or verified:
// [ErrNoKey]. It takes as long as there are lines, and ends early with the cause of ctx.
func Verify(ctx context.Context, path string, o VerifyOptions) (*Report, error) {
	s, err := openLog(path)
	if err != nil {
		return nil, err
	}
	defer s.close()
	v := new(verifier)
	if len(s.files) == 0 && len(s.state) == 0 && o.Checkpoint == "" {
		return &v.report, nil
	}
	if err := v.prepare(s, o); err != nil {
		return nil, err
	}
	for i := range s.files {
		if err := v.verifyFile(ctx, s, i); err != nil {
			return nil, err
		}
	}
	if err := v.end(s); err != nil {
		return nil, err
	}
	v.report.Files, v.report.First, v.report.Last = len(s.files), v.first, v.n
	return &v.report, nil
}

func openLog(path string) (*snapshot, error) {
	var err error
	if path == "" {
		path, err = DefaultDir()
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	s, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return s, nil
}

// prepare reads the keys and the checkpoints.
func (v *verifier) prepare(s *snapshot, o VerifyOptions) error {
	keys := o.Keys
	if keys == nil {
		key, _, err := safefile.Read(filepath.Join(s.dir, keyName+pubExt), maxKey)
		if err != nil {
			return ErrNoKey
		}
		keys = []string{string(key)}
	}
	var err error
	if v.keys, err = verifiers(keys); err != nil {
		return err
	}
	if o.Checkpoint != "" {
		c, err := openCheckpoint(splitCheckpoint([]byte(o.Checkpoint)), v.keys)
		if err != nil {
			return fmt.Errorf("audit: the checkpoint cannot be used: %w", err)
		}
		v.expected = append(v.expected, expected{c, ""})
	}
	if !s.whole && !s.ended {
		return nil // a rotated file ends with a checkpoint of its own
	}
	v.file = filepath.Join(s.dir, checkpointName)
	if len(s.state) == 0 {
		if s.whole {
			return v.broken(0, "it is missing or empty: lines at the end may be missing as well")
		}
		return nil
	}
	signed, _ := splitState(s.state)
	c, err := openCheckpoint(signed, v.keys)
	if err != nil {
		return v.broken(0, err.Error())
	}
	v.expected = append(v.expected, expected{c, v.file})
	return nil
}

// splitCheckpoint takes the checkpoint out of a copy of the file that a log has, or returns the text as it
// is.
func splitCheckpoint(b []byte) string {
	if signed, c := splitState(bytes.TrimRight(b, " \n\x00")); c != nil {
		return signed
	}
	return string(b)
}

func (v *verifier) broken(n uint64, why string) error {
	return &BrokenError{v.file, v.line, n, why}
}

func (v *verifier) verifyFile(ctx context.Context, s *snapshot, i int) error {
	v.file, v.line = filepath.Join(s.dir, s.names[i]), 0
	_, half, err := scanLines(io.NewSectionReader(s.files[i], 0, s.sizes[i]), 0, func(text []byte) error {
		v.line++
		const often = 1 << 12
		if v.line%often == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return v.check(text)
	})
	if err != nil {
		return err
	}
	v.line++
	switch last := i == len(s.files)-1 && (s.ended || !s.whole); {
	case half > 0 && !last:
		return v.broken(v.n+1, "it is cut off")
	case half > 0 && last:
		if err := v.missing("cut off"); err != nil {
			return err
		}
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("half a line of %d bytes is at the end: a writer was killed", half))
	case s.names[i] != currentName && v.last != kindCheckpoint:
		return v.broken(v.n+1, "the file does not end with a checkpoint: lines at its end are missing")
	}
	if first, ok := firstOf(s.names[i]); ok && s.whole && i == 0 && first != v.first {
		v.line = 1
		return v.broken(v.first, fmt.Sprintf("the file is named as if line %d were its first", first))
	}
	return nil
}

// check takes the next line.
func (v *verifier) check(text []byte) error {
	began := v.first > 0
	l, err := v.next(text, v.line == 1)
	if err != nil {
		return v.broken(l.n, err.Error())
	}
	if !began {
		if err := v.reached(); err != nil {
			return err
		}
	}
	switch l.kind {
	case kindCheckpoint:
		err = v.checkpoint(&l)
	case kindRecovered:
		var found struct{ Found []string }
		_ = json.Unmarshal(l.body, &found) // what is not one of ours says nothing
		for _, f := range found.Found {
			v.report.Notes = append(v.report.Notes, fmt.Sprintf("before line %d %s", l.n, f))
		}
	case kindLost:
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("line %d says that records are lost: %s", l.n, l.body))
	}
	if err != nil {
		return v.broken(l.n, err.Error())
	}
	v.count(&l, text)
	v.last = l.kind
	return v.reached()
}

// checkpoint checks a line that is one of all lines before it.
func (v *verifier) checkpoint(l *line) error {
	var body struct{ Note string }
	if err := json.Unmarshal(l.body, &body); err != nil {
		return errNote
	}
	c, err := openCheckpoint(body.Note, v.keys)
	if err != nil {
		return err
	}
	return v.compare(c)
}

// reached compares the checkpoints of as many lines as there were now.
func (v *verifier) reached() error {
	for _, e := range v.expected {
		if e.n != v.n {
			continue
		}
		if err := v.compare(e.checkpoint); err != nil {
			return v.broken(v.n, err.Error())
		}
	}
	return nil
}

// compare compares a checkpoint with the tree.
func (v *verifier) compare(c *checkpoint) error {
	if c.root != v.root() {
		return fmt.Errorf("one of %s was replaced, and those after it: the checkpoint of %s is of others",
			lines(v.report.Signed+1, c.n), c.time.Format(time.RFC3339))
	}
	v.report.Checkpoints++
	v.report.Signed, v.report.SignedAt = c.n, c.time
	return nil
}

// missing returns an error if a checkpoint covers lines that are not there.
func (v *verifier) missing(what string) error {
	for _, e := range v.expected {
		if first := v.n + 1; e.n >= first {
			return v.broken(first, fmt.Sprintf("%s %s %s: the checkpoint of %s covers %d lines", lines(first, e.n),
				verb(first, e.n), what, e.time.Format(time.RFC3339), e.n))
		}
	}
	return nil
}

// end looks for what is missing at both ends.
func (v *verifier) end(s *snapshot) error {
	if s.whole || s.ended {
		if err := v.missing("missing"); err != nil {
			return err
		}
	}
	for _, e := range v.expected {
		if e.n+1 < v.first && e.file == "" {
			v.report.Notes = append(v.report.Notes, fmt.Sprintf(
				"the checkpoint of %s cannot be compared: it covers %d lines, and the log begins at line %d",
				e.time.Format(time.RFC3339), e.n, v.first))
		} else if e.n+1 < v.first {
			v.file, v.line = e.file, 0
			return v.broken(0, fmt.Sprintf("it covers %d lines, and the log begins at line %d", e.n, v.first))
		}
	}
	if s.whole && v.begins < v.first && len(s.names) > 0 {
		v.file, v.line = filepath.Join(s.dir, s.names[0]), 1
		return v.broken(v.first, fmt.Sprintf("%s before it %s missing: the log did not remove them",
			lines(v.begins, v.first-1), verb(v.begins, v.first-1)))
	}
	return nil
}

// Checkpoint returns the last checkpoint of a log, to be kept elsewhere. An empty dir means [DefaultDir].
// It is not verified. A log without lines has none, which is an error that is [fs.ErrNotExist].
func Checkpoint(dir string) ([]byte, error) {
	s, err := openLog(dir)
	if err != nil {
		return nil, err
	}
	s.close()
	signed, c := splitState(s.state)
	if c == nil {
		return nil, fmt.Errorf("audit: %s has no checkpoint: %w", text.Word(s.dir), fs.ErrNotExist)
	}
	return []byte(signed), nil
}
