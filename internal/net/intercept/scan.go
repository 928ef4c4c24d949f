// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
)

// A pair is what is looked for, and what takes its place, which is as long. Nothing takes the place of
// what is refused.
type pair struct {
	from, to []byte
	entry    *entry
}

// A table replaces several things at once: what begins first, and of these the longest.
type table struct {
	pairs []pair // the longest first
	first [256]bool
	// mask replaces the part of something with which a stream ends.
	mask bool
}

func newTable(pairs []pair) *table {
	t := &table{pairs: slices.DeleteFunc(pairs, func(p pair) bool {
		return len(p.from) == 0 ||
			bytes.Equal(p.from, p.to)
	})}
	slices.SortStableFunc(t.pairs, func(a, b pair) int { return cmp.Compare(len(b.from), len(a.from)) })
	for _, p := range t.pairs {
		t.first[p.from[0]] = true
	}
	return t
}

// minMasked is how much of the end of a stream has to be the beginning of something that is replaced.
const minMasked = minSecret

// replace replaces in p itself. It returns how many bytes are done: the rest may be the beginning of
// something, unless p is the last of a stream. Found is what is refused; nothing behind it is done.
func (t *table) replace(p []byte, last bool) (done int, found *entry) {
	for i := 0; i < len(p); {
		if !t.first[p[i]] {
			i++
			continue
		}
		n, waits := t.at(p[i:], last)
		if waits {
			return i, nil
		}
		if n < 0 {
			i++
			continue
		}
		one := t.pairs[n]
		if one.to == nil {
			return i, one.entry
		}
		i += copy(p[i:], one.to)
	}
	return len(p), nil
}

// at returns the number of the pair that p begins with, or -1. It waits where a longer one may follow.
func (t *table) at(p []byte, last bool) (n int, waits bool) {
	part := -1
	for n := range t.pairs {
		one := &t.pairs[n]
		switch {
		case len(p) >= len(one.from):
			if bytes.HasPrefix(p, one.from) {
				return n, false
			}
		case !bytes.HasPrefix(one.from, p):
		case !last:
			return -1, true
		case t.mask && part < 0 && len(p) >= minMasked:
			part = n
		}
	}
	return part, false
}

// text replaces in a text.
func (t *table) text(s string) (string, *entry) {
	if !t.mayContain(s) {
		return s, nil
	}
	p := []byte(s)
	_, found := t.replace(p, true)
	out := string(p)
	clear(p)
	return out, found
}

func (t *table) mayContain(s string) bool {
	for i := range len(s) {
		if t.first[s[i]] {
			return true
		}
	}
	return false
}

// pieceSize is how much of a stream is read at once, in bytes.
const pieceSize = 32 << 10

// A stream replaces in what it reads. It keeps back no byte that cannot be the beginning of something.
type stream struct {
	src     io.ReadCloser
	set     *Credentials
	table   *table
	refused func(*entry) error // the error for what is refused
	atEnd   func()             // called once, when all was read without an error; may be nil
	frames  *frames            // of a websocket; nil of another stream

	buf              []byte
	start, done, end int // of what is ready, and of what was read
	err              error
}

func newStream(s *Credentials, src io.ReadCloser, t *table) *stream {
	longest := 0
	if len(t.pairs) > 0 {
		longest = len(t.pairs[0].from)
	}
	return &stream{src: src, set: s, table: t, buf: make([]byte, longest+pieceSize)}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for s.start == s.done {
		if s.err != nil {
			clear(s.buf)
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.buf[s.start:s.done])
	s.start += n
	return n, nil
}

// fill reads more.
func (s *stream) fill() {
	s.end = copy(s.buf, s.buf[s.done:s.end])
	n, err := s.src.Read(s.buf[s.end:])
	if s.frames != nil {
		s.frames.pass(s.buf[s.end : s.end+n])
	}
	s.end += n
	s.start, s.done = 0, 0
	// A stream that breaks ends as well: the rest must not go on as it is.
	done, found, closed := s.replace(s.buf[:s.end], err != nil || s.frames.atEnd())
	s.done, s.err = done, err
	switch {
	case closed:
		s.done, s.err = 0, errClosed
	case found != nil:
		s.err = s.refused(found)
	case errors.Is(err, io.EOF) && s.atEnd != nil:
		s.atEnd()
		s.atEnd = nil
	}
}

func (s *stream) replace(p []byte, last bool) (done int, found *entry, closed bool) {
	if !s.set.enter() {
		return 0, nil, true
	}
	defer s.set.mu.RUnlock()
	done, found = s.table.replace(p, last)
	return done, found, false
}

// Close closes what it reads from.
func (s *stream) Close() error { return s.src.Close() }
