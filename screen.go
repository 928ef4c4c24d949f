// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import "strings"

// A Screen is what a session's terminal shows.
type Screen struct {
	// Lines are the rows from top to bottom, without trailing blanks and control
	// characters.
	Lines      []string
	Cols, Rows int
	// Col and Row are the place of the cursor, from 0; Hidden says that it is not shown.
	Col, Row int
	Hidden   bool
	// Title is the title that the program gave its window; empty for none.
	Title string
	// Alternate says that this is the second screen, which full-screen programs use.
	Alternate bool
	// Modes are the sequences that bring a terminal into the modes of the program.
	Modes string
}

// String returns the rows as text, without empty rows at the end.
func (s Screen) String() string {
	text := strings.TrimRight(strings.Join(s.Lines, "\n"), "\n")
	if text == "" {
		return ""
	}
	return text + "\n"
}

// Screen returns what the terminal shows now; false without Cmd.Screen. It has no colors,
// and no lines that have left the screen.
func (s *Session) Screen() (Screen, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen == nil {
		return Screen{}, false
	}
	v := s.screen.Snapshot()
	return Screen{
		Lines: v.Lines, Cols: v.Cols, Rows: v.Rows,
		Col: v.Cursor.Col, Row: v.Cursor.Row, Hidden: !v.Cursor.Visible,
		Title: v.Title, Alternate: v.Alternate, Modes: s.screen.Modes(),
	}, true
}
