// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"errors"
	"regexp"
)

const (
	// defaultMatches is how many matches a search returns unless it is told.
	defaultMatches = 1000
	// maxMatchData bounds what a match shows of its line, and matchBefore how much of
	// that stands before it, in bytes.
	maxMatchData = 4 << 10
	matchBefore  = 1 << 10
)

// A Match is the first match of a regular expression in a line.
type Match struct {
	Line   int    // from 1
	Offset uint64 // of the match
	// Data is the line without its end; of a long one, at most 4 KiB around the match.
	Data []byte
	// Start and End say where in Data the match is; End is the end of Data if the match
	// goes on.
	Start, End int
}

// Found is what a search found, and in what. The zero Found found nothing in nothing.
type Found struct {
	Matches  []Match // by offset
	Searched uint64  // bytes that were looked at
	Missing  uint64  // bytes that could not be, because nobody has them any more
	// Split counts the lines longer than [MaxPiece] that were looked at in pieces of
	// that size: a match across two of them was not seen.
	Split int
	More  bool // the search stopped because it had found as many as it was asked for
}

// Search looks for the regular expression in everything that is kept, line by line and
// without the ends of the lines ("\n" or "\r\n"), and returns at most most matches,
// one for a line; zero and negative are 1 000. What a gap has left of a line counts as
// one, so that "^" and "$" also match at its edges. What is written meanwhile is not
// looked at. With an error of ctx it returns what it has found until then.
func (l *Log) Search(ctx context.Context, re *regexp.Regexp, most int) (Found, error) {
	if re == nil {
		return Found{}, errors.New("output: there is nothing to search for; give a regular expression")
	}
	if most <= 0 {
		most = defaultMatches
	}
	s := searcher{re: re, most: most}
	prefix, _ := re.LiteralPrefix()
	s.prefix = []byte(prefix)
	w := l.walkFromLine(1)
	for !s.found.More {
		if err := ctx.Err(); err != nil {
			return s.found, err
		}
		seg, ok := w.next()
		if !ok {
			break
		}
		if seg.data == nil {
			s.flush()
			s.found.Missing += seg.missing
			continue
		}
		s.bytes(seg)
	}
	s.flush()
	return s.found, nil
}

// A searcher looks through one line after the other.
type searcher struct {
	re     *regexp.Regexp
	prefix []byte // every match begins with it
	most   int
	found  Found

	rest   []byte // of a line whose end has not come yet
	off    uint64 // of rest
	number uint64 // of its line
	split  bool   // of that line, pieces were looked at already
}

// bytes takes what comes next.
func (s *searcher) bytes(seg segment) {
	s.found.Searched += uint64(len(seg.data))
	p, off, number := seg.data, seg.off, seg.line
	if len(s.rest) > 0 || s.split {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			s.keep(p, off, number)
			return
		}
		s.keep(p[:n], off, number)
		s.flush()
		p, off, number = p[n+1:], off+uint64(n)+1, number+1
	}
	whole := p[:bytes.LastIndexByte(p, '\n')+1]
	tail := p[len(whole):]
	tailOff := off + uint64(len(whole))
	if len(s.prefix) > 0 && !bytes.Contains(whole, s.prefix) {
		number += uint64(bytes.Count(whole, newline))
		whole = nil
	}
	for len(whole) > 0 && !s.found.More {
		n := bytes.IndexByte(whole, '\n')
		s.line(whole[:n], off, number)
		whole, off, number = whole[n+1:], off+uint64(n)+1, number+1
	}
	if len(tail) > 0 && !s.found.More {
		s.keep(tail, tailOff, number)
	}
}

// keep adds to a line whose end has not come yet. A segment is no longer than a piece,
// so that one piece at most becomes full.
func (s *searcher) keep(p []byte, off, number uint64) {
	if len(s.rest) == 0 {
		s.off, s.number = off, number
	}
	n := min(len(p), MaxPiece-len(s.rest))
	s.rest = append(s.rest, p[:n]...)
	if n == len(p) {
		return
	}
	if !s.split {
		s.split = true
		s.found.Split++
	}
	s.line(s.rest, s.off, s.number)
	s.rest = append(s.rest[:0], p[n:]...)
	s.off, s.number = off+uint64(n), number
}

// flush looks at the rest of a line, which ends here or at a gap.
func (s *searcher) flush() {
	if len(s.rest) > 0 {
		s.line(s.rest, s.off, s.number)
	}
	s.rest, s.split = s.rest[:0], false
}

// line looks at a line without its newline.
func (s *searcher) line(p []byte, off, number uint64) {
	p = bytes.TrimSuffix(p, []byte{'\r'})
	at := s.re.FindIndex(p)
	if at == nil {
		return
	}
	if n := len(s.found.Matches); n > 0 && s.found.Matches[n-1].Line == int(number) {
		return // another piece of the same line
	}
	if len(s.found.Matches) == s.most {
		s.found.More = true
		return
	}
	from := 0
	if len(p) > maxMatchData {
		from = min(max(at[0]-matchBefore, 0), len(p)-maxMatchData)
	}
	to := min(len(p), from+maxMatchData)
	s.found.Matches = append(s.found.Matches, Match{
		Line: int(number), Offset: off + uint64(at[0]),
		Data:  bytes.Clone(p[from:to]),
		Start: at[0] - from, End: min(at[1], to) - from,
	})
}
