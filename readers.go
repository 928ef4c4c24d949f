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

// What readers of a session's output get.
type (
	// A Delta is a piece of the output.
	Delta = executor.Chunk
	// A Line is a line of the output, or a gap in it.
	Line = executor.Line
	// A Match is the first match of a pattern in a line of the output.
	Match = executor.Match
	// Found is the result of a search.
	Found = executor.Found
)

// Deltas returns the output of the session from an offset on, as it is and as it comes,
// up to its end or to the end of ctx, which is an error. Every caller has an offset of its
// own: two get the same bytes, one that comes late misses nothing that is retained, and
// one that stops disturbs no other. Deltas takes no output away from Await.
func (s *Session) Deltas(ctx context.Context, from uint64) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for at := from; ; {
			d, err := s.output().Read(ctx, at)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Delta{Offset: at}, fmt.Errorf("sallyport: cannot read the output: %w", err))
				return
			}
			if !yield(d, nil) {
				return
			}
			at = d.End()
		}
	}
}

// Size returns how many bytes the command has printed so far, and how many of them are
// not retained.
func (s *Session) Size() (total, missing uint64) { return s.output().Size() }

// LineCount returns the number of lines so far; the last one may be incomplete.
func (s *Session) LineCount() int { return s.output().LineCount() }

// Lines returns the lines from and to and those between, as far as they exist, both
// streams in order of arrival. A number below 1 means the first line, or the last one. A
// gap stands for lines that are not retained, and the numbers after it are true. A result
// holds at most 16 MiB; if more is true, the next call begins after the last line.
func (s *Session) Lines(from, to int) (lines []Line, more bool) { return s.output().Lines(from, to) }

// Search looks for a pattern in all output that is retained and returns one match for a
// line, and at most most of them; 0 means 1 000. With an error, Found holds the matches so
// far.
func (s *Session) Search(ctx context.Context, pattern *regexp.Regexp, most int) (Found, error) {
	if pattern == nil {
		return Found{}, errors.New("sallyport: no pattern to search for; pass a regular expression")
	}
	found, err := s.output().Search(ctx, pattern, most)
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
