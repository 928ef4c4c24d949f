// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

// These files model a terminal, to show what a program that draws would show.
//
// Programs such as vim, less, top or a progress bar do not write text but instructions:
// move the cursor, erase a line, insert one. A [Screen] executes them on a grid of cells,
// and a [Snapshot] has the visible text, the cursor and the title.
//
// Bytes go through three layers, each of which keeps its state, so that a sequence can be
// cut anywhere: a UTF-8 decoder (decode.go), Paul Williams' state machine for the DEC VT500
// (parse.go, https://vt100.net/emu/dec_ansi_parser), and the functions of the sequences
// (control.go, mode.go) on the grid (grid.go). The functions follow xterm and ECMA-48.
//
// The bytes are hostile. No text of the screen gets into an answer: [Screen.Replies] has
// fixed forms with known numbers in them, so that a program cannot make the terminal type.
// There are no title reports, no answerback, no status strings. Everything that is kept has
// a bound: titles, marks on one character, distinct combinations of marks, answers, and the
// length of a string. Controls and marks of direction are not kept.
//
// Deliberate limits:
//   - Colors, weights and other attributes are dropped; concealed text is shown.
//   - There is no scrollback; OnScroll gets its lines. Lines are not wrapped anew when the size changes; cells
//     that are cut off are lost.
//   - Widths are those of wcwidth: a sequence of emoji with joiners takes the cells of its
//     parts, a variation selector changes no width, and characters of ambiguous width take
//     one cell.
//   - Not supported: left and right margins, double-width lines, rectangles, protected
//     cells, reverse wraparound, 132 columns, 8-bit shifts, and national character sets
//     other than the British one.
//   - Synchronized output does not wait: a snapshot can show half a frame.
//   - REP repeats a character 2000 times at most.
//
// Differences from xterm.js 6.0, the reference for the tests:
//   - A byte that is not UTF-8 is shown as U+FFFD instead of not at all.
//   - A mark after a control sequence joins the character on its left; it takes no cell.
//   - In origin mode relative movements and CHA stay in their row, the report of the
//     cursor's position counts from the margin, and a saved cursor includes origin mode,
//     all four character sets and the shift.
//   - Tab stops belong to the terminal, not to each of its two screens, and a change of
//     size does not change them.
//   - DECALN resets the margins and origin mode first.
//   - RIS resets newline mode and shows the cursor.
//   - A wide character that has no room because wrapping is off is not repeated by REP,
//     and one that is half overwritten in the last column disappears.
//   - Text in APC, PM and SOS strings may be any Unicode.
//   - An underscore in the line drawing set is a blank; RI has its 8-bit form; locking
//     shifts to the right half do nothing.
//   - Invisible controls (direction, zero-width space, line separators) are dropped.
//   - CSI T with more than one parameter, which asks for mouse highlighting, scrolls nothing.
//
// They draw nothing, start nothing and read no state of the machine.

import "strings"

// Bounds of the size, and the default: the VT100's.
const (
	maxSide     = 1000
	defaultCols = 80
	defaultRows = 24
)

// A Screen is a model of a terminal. New makes one; the zero value is not usable. It is
// not safe for concurrent use.
type Screen struct {
	// OnScroll is called with each line that leaves the main screen at its top, without blanks at its end. It
	// must not use the Screen. Nil is not called.
	OnScroll func(line string)

	cols, rows int

	main *grid
	alt  *grid // the alternate screen; nil until it is first shown
	g    *grid // the one that is shown

	cursor  cursor
	saved   [2]cursor // of the main and the alternate screen
	tabs    [maxSide]bool
	mode    modes
	joined  bool // the last input was a character, so REP can repeat it
	title   string
	titles  []string    // pushed ones, the latest last
	state   ScreenModes // what the program has set, for a terminal that is shown this screen later
	replies []byte

	marks marks

	partial []byte // beginning of a character in UTF-8
	parser  parser
}

// A cursor is the place of the next character and its translation. DECSC saves both.
type cursor struct {
	x, y   int // x is cols when the last column was written and the next character wraps
	sets   [4]charset
	shift  int // the set in use, an index of sets
	origin bool
}

// modes are the switches that change what is visible. Others are ignored.
type modes struct {
	insert  bool // IRM
	newline bool // LNM
	nowrap  bool // DECAWM is off
	hidden  bool // DECTCEM is off
}

// NewScreen returns a blank screen of that size. Each side is clamped to 1..1000, and zero or less
// means 80 columns or 24 rows. A screen of 80x24 takes about 10 KiB, and 8 more when the
// alternate screen is first shown.
func NewScreen(cols, rows int) *Screen {
	s := &Screen{}
	s.cols, s.rows = clampSize(cols, rows)
	s.main = newGrid(s.cols, s.rows)
	s.reset()
	return s
}

// clampSize applies the bounds and defaults of a size.
func clampSize(cols, rows int) (int, int) {
	if cols <= 0 {
		cols = defaultCols
	}
	if rows <= 0 {
		rows = defaultRows
	}
	return min(cols, maxSide), min(rows, maxSide)
}

// reset is RIS: the terminal as after power-on. Size, title and unread answers stay.
func (s *Screen) reset() {
	s.main.clear(0, s.rows)
	s.main.top, s.main.bottom = 0, s.rows-1
	if s.alt != nil {
		s.alt.clear(0, s.rows)
	}
	s.g = s.main
	s.cursor = cursor{}
	s.saved = [2]cursor{}
	s.mode = modes{}
	s.joined = false
	s.titles = nil
	s.state = ScreenModes{}
	s.marks = marks{}
	for x := range s.tabs {
		s.tabs[x] = x%8 == 0
	}
}

// Write executes what a program wrote. It takes any bytes, keeps an unfinished sequence
// for the next call, returns len(p) and never an error.
func (s *Screen) Write(p []byte) (int, error) {
	for i := 0; i < len(p); {
		if s.parser.state == ground && len(s.partial) == 0 {
			n := i
			for n < len(p) && p[n] >= 0x20 && p[n] < 0x7f {
				n++
			}
			if n > i {
				s.printASCII(p[i:n])
				i = n
				continue
			}
		}
		s.decode(p[i])
		i++
	}
	return len(p), nil
}

// Resize changes the size by New's rules. As in xterm lines are not wrapped anew: columns
// and rows without room are cut off, rows below the cursor first, then those at the top.
// The margins are reset, tab stops stay.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = clampSize(cols, rows)
	if cols == s.cols && rows == s.rows {
		return
	}
	at := s.cursor.y
	if s.g != s.main {
		up := max(0, at-(rows-1))
		s.alt.resize(cols, rows, up)
		s.saved[1].y -= up
		at = s.main.leftAt
	} else {
		s.alt = nil
	}
	up := max(0, at-(rows-1))
	s.main.resize(cols, rows, up)
	s.main.leftAt = min(at, rows-1)
	s.saved[0].y -= up
	s.cols, s.rows = cols, rows
	s.cursor.clamp(cols, rows)
	for i := range s.saved {
		s.saved[i].clamp(cols, rows)
	}
}

// clamp keeps the cursor on a screen of that size.
func (c *cursor) clamp(cols, rows int) {
	c.x, c.y = min(c.x, cols-1), max(0, min(c.y, rows-1))
}

// A Cursor is a place on the screen. Col and Row count cells from zero at the top left;
// both are always on the screen. Visible is false after a program has hidden it.
type Cursor struct {
	Col, Row int
	Visible  bool
}

// A Snapshot is what is visible at one moment. It shares no memory with the Screen.
type Snapshot struct {
	// Lines has Rows strings, top to bottom, without the blanks at their ends. None is wider
	// than Cols cells and none contains control characters.
	Lines      []string
	Cols, Rows int
	Cursor     Cursor
	// Title is the program's title of its window, at most 1024 bytes of UTF-8 without control
	// characters. It is empty if the program has set none.
	Title string
	// Alternate reports whether the alternate screen is shown, as full-screen programs do.
	Alternate bool
}

// Modes returns what brings a terminal in its usual state into the modes that the program has set;
// empty for none.
func (s *Screen) Modes() string {
	_, modes, _ := s.state.Away()
	return modes
}

// Snapshot returns what is visible now.
func (s *Screen) Snapshot() Snapshot {
	snap := Snapshot{
		Lines:     make([]string, s.rows),
		Cols:      s.cols,
		Rows:      s.rows,
		Cursor:    Cursor{Col: min(s.cursor.x, s.cols-1), Row: s.cursor.y, Visible: !s.mode.hidden},
		Title:     s.title,
		Alternate: s.g != s.main,
	}
	for y := range s.rows {
		snap.Lines[y] = s.line(y)
	}
	return snap
}

// line returns the text of a row of the screen that is shown, without blanks at its end.
func (s *Screen) line(y int) string {
	var text []byte
	blanks := 0
	for _, c := range s.g.look(y) {
		switch {
		case c&tail != 0:
		case c.code() == 0 || c.code() == ' ':
			blanks++
		default:
			for ; blanks > 0; blanks-- {
				text = append(text, ' ')
			}
			text = s.marks.append(text, c)
		}
	}
	return string(text)
}

// scrollUp moves rows of the screen that is shown up, and tells which of the main one leave at its top.
func (s *Screen) scrollUp(top, bottom, n int) {
	if s.OnScroll != nil && top == 0 && s.g == s.main {
		for y := range min(n, bottom+1) {
			s.OnScroll(s.line(y))
		}
	}
	s.g.scrollUp(top, bottom, n)
}

// String returns the lines with newlines between them, without the empty ones at the end.
func (s Snapshot) String() string {
	n := len(s.Lines)
	for n > 0 && s.Lines[n-1] == "" {
		n--
	}
	return strings.Join(s.Lines[:n], "\n")
}
