// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
)

// A Delta is a piece of a session's output.
type Delta struct {
	// Offset is the place of the first byte of Data among the bytes of both streams in
	// order of arrival, from 0.
	Offset uint64
	// Missing is how many bytes directly before Offset nobody can have any more: they
	// are neither in memory nor in the file.
	Missing uint64
	Stream  executor.Stream
	// Joined says that the two streams took turns so often that Data, which comes out of
	// the file, may hold bytes of both.
	Joined bool
	Data   []byte // belongs to the receiver; empty only behind missing bytes at the end
}

// Deltas returns the output of the session from an offset on, as it is and as it comes,
// up to its end or to the end of ctx, which is told as an error. Every caller has a
// cursor of its own: two get the same bytes, one that comes late misses nothing that is
// kept, and one that stops disturbs nobody. Neither takes output away from Await. Pieces
// are of any length up to 64 KiB and may end within a character.
func (s *Session) Deltas(ctx context.Context, from uint64) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		r := s.log.Reader(from)
		for {
			p, err := r.Next(ctx)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Delta{Offset: r.Offset()}, fmt.Errorf("sallyport: the reading was canceled: %w", context.Cause(ctx)))
				return
			}
			d := Delta{Offset: p.Offset, Missing: p.Missing, Stream: executor.Stream(p.Stream), Joined: p.Joined, Data: p.Data}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Size returns how many bytes the command has printed so far, and how many of them
// nobody can have any more.
func (s *Session) Size() (total, missing uint64) { return s.log.Size(), s.log.Missing() }

// A Line is a line of a session's output, or a gap in it.
type Line struct {
	Number int    // from 1; of a gap, the first line of which bytes are missing
	Offset uint64 // of Data, or of the gap; see Delta
	// Data is the line without its newline, or its first 64 KiB.
	Data []byte
	// Size is the length of the whole line, as far as it is kept, without its newline.
	Size uint64
	// Cut says that a gap begins or ends in this line, so that it may be a part of one.
	Cut bool
	// Missing is the length of the gap in bytes; 0 if this is a line.
	Missing uint64
	// Last is the last line of which bytes are missing in a gap; 0 if this is a line.
	Last int
}

// LineCount returns how many lines there are; the last one need not be complete.
func (s *Session) LineCount() int { return s.log.LineCount() }

// Lines returns the lines from and to and those between, both streams in order of
// arrival, as far as there are any now. A number below 1 means the first line, or the
// last one. Where lines are missing there is a gap between others, whose numbers stay
// true. There are at most 16 MiB; when there would be more, more is true, and the next
// call begins behind the last line.
func (s *Session) Lines(from, to int) (lines []Line, more bool) {
	found, more := s.log.Lines(from, to)
	lines = make([]Line, len(found))
	for i, l := range found {
		lines[i] = Line(l)
	}
	return lines, more
}

// A Match is the first match of a pattern in a line of a session's output.
type Match struct {
	Line   int    // from 1
	Offset uint64 // of the match; see Delta
	// Data is the line without its end; of a long one, at most 4 KiB around the match.
	Data []byte
	// Start and End say where in Data the match is.
	Start, End int
}

// Found is what a search found, and in what.
type Found struct {
	Matches  []Match // by offset
	Searched uint64  // bytes that were looked at
	Missing  uint64  // bytes that could not be: nobody has them any more
	// Split counts lines of more than 64 KiB: a match across two pieces of that size was
	// not seen.
	Split int
	More  bool // there may be more than was asked for
}

// Search looks for a regular expression in all output that is kept, line by line, and
// returns one match for a line and at most most of them, 0 being 1 000. With the end of
// ctx it returns what it has found until then, and an error.
func (s *Session) Search(ctx context.Context, pattern *regexp.Regexp, most int) (Found, error) {
	if pattern == nil {
		return Found{}, &UntilError{Field: "Match", Reason: "there is no pattern to look for"}
	}
	f, err := s.log.Search(ctx, pattern, most)
	found := Found{Searched: f.Searched, Missing: f.Missing, Split: f.Split, More: f.More}
	for _, m := range f.Matches {
		found.Matches = append(found.Matches, Match(m))
	}
	if err != nil {
		err = fmt.Errorf("sallyport: the search was canceled: %w", err)
	}
	return found, err
}

// A Screen is what a person would see on a session's terminal.
type Screen struct {
	// Lines are the rows from top to bottom, without the blanks at their ends and
	// without control characters.
	Lines      []string
	Cols, Rows int
	// Col and Row are where the cursor is, from 0, and Hidden whether it is not shown.
	Col, Row int
	Hidden   bool
	// Title is what the program calls its window; empty if it never said.
	Title string
	// Alternate says that the second screen is shown, as full-screen programs do.
	Alternate bool
}

// String returns the rows as text, without the empty ones at the end.
func (s Screen) String() string {
	text := strings.TrimRight(strings.Join(s.Lines, "\n"), "\n")
	if text == "" {
		return ""
	}
	return text + "\n"
}

// Screen returns what is to be seen on the terminal now. It is false without a model of
// it, which Cmd.Screen asks for. The model keeps no colors, and no lines that have left
// the screen.
func (s *Session) Screen() (Screen, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil {
		return Screen{}, false
	}
	v := s.view.Snapshot()
	return Screen{
		Lines: v.Lines, Cols: v.Cols, Rows: v.Rows,
		Col: v.Cursor.Col, Row: v.Cursor.Row, Hidden: !v.Cursor.Visible,
		Title: v.Title, Alternate: v.Alternate,
	}, true
}
