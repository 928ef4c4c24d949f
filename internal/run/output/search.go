// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"errors"
	"regexp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

const (
	// defaultMatches is how many matches a search returns by default.
	defaultMatches = 1000
	// maxMatchData limits what a match shows of its line, and matchBefore how much of
	// that comes before the match, in bytes.
	maxMatchData = 4 << 10
	matchBefore  = 1 << 10
)

// Search implements [executor.Output].
func (l *Log) Search(ctx context.Context, pattern *regexp.Regexp, most int) (executor.Found, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return executor.Found{}, err
	}
	if pattern == nil {
		return executor.Found{}, errors.New("no pattern to search for; pass a regular expression")
	}
	if most <= 0 {
		most = defaultMatches
	}
	prefix, _ := pattern.LiteralPrefix()
	s := searcher{pattern: pattern, prefix: []byte(prefix), most: most}
	for w := l.walkFromLine(1); !s.found.More; {
		if ctx.Err() != nil {
			return s.found, context.Cause(ctx)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	s.found.Missing += l.beyond().bytes
	return s.found, nil
}

// A searcher looks at one line after the other.
type searcher struct {
	pattern *regexp.Regexp
	prefix  []byte // every match begins with it
	most    int
	found   executor.Found

	rest   []byte // of a line whose end has not come yet
	off    uint64 // of rest
	number uint64 // of its line
	split  bool   // pieces of that line were looked at already
}

// bytes takes what comes next.
func (s *searcher) bytes(seg segment) {
	s.found.Searched += uint64(len(seg.data))
	p, off, number := seg.data, seg.off, seg.line
	if len(s.rest) > 0 || s.split {
		part, rest, ends := bytes.Cut(p, newline)
		s.keep(part, off, number)
		if !ends {
			return
		}
		s.flush()
		off, number = off+uint64(len(p)-len(rest)), number+1
		p = rest
	}
	// Lines that are complete here are looked at in place, if any of them can match.
	if whole := p[:bytes.LastIndexByte(p, '\n')+1]; !bytes.Contains(whole, s.prefix) {
		number += uint64(bytes.Count(whole, newline))
		off += uint64(len(whole))
		p = p[len(whole):]
	}
	for len(p) > 0 && !s.found.More {
		part, rest, ends := bytes.Cut(p, newline)
		if !ends {
			s.keep(part, off, number)
			return
		}
		s.line(part, off, number)
		off, number = off+uint64(len(p)-len(rest)), number+1
		p = rest
	}
}

// keep adds to a line whose end has not come yet. A segment is no longer than a piece, so
// that at most one piece becomes full.
func (s *searcher) keep(p []byte, off, number uint64) {
	if len(s.rest) == 0 {
		s.off, s.number = off, number
	}
	n := min(len(p), MaxChunk-len(s.rest))
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
	at := s.pattern.FindIndex(p)
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
	s.found.Matches = append(s.found.Matches, executor.Match{
		Line: int(number), Offset: off + uint64(at[0]),
		Data:  bytes.Clone(p[from:to]),
		Start: at[0] - from, End: min(at[1], to) - from,
	})
}
