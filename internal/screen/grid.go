// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import "unicode/utf8"

// A cell is one place of the grid: a code in its low 21 bits and two flags. Zero is blank.
// A code up to U+10FFFF is a character; a larger one names a character with marks on it.
type cell uint32

const (
	codeMask cell = 1<<21 - 1
	// wide marks a cell whose character also covers the next one, which is marked tail and
	// has no code. The two are always together.
	wide cell = 1 << 31
	tail cell = 1 << 30

	firstMarked = utf8.MaxRune + 1
)

func (c cell) code() cell { return c & codeMask }

// A grid is one of the two screens. Rows are reached through an order of their own, so that
// scrolling moves numbers instead of cells.
type grid struct {
	cols, rows  int
	cells       []cell
	order       []uint16 // where row y begins, in rows
	touched     []bool   // whether the row at that place may have something in it
	top, bottom int      // margins: first and last row that scroll
	leftAt      int      // row of the cursor when this grid was left for the other
}

func newGrid(cols, rows int) *grid {
	g := &grid{cols: cols, rows: rows, bottom: rows - 1}
	g.cells = make([]cell, cols*rows)
	g.order = make([]uint16, rows)
	g.touched = make([]bool, rows)
	for y := range g.order {
		g.order[y] = uint16(y)
	}
	return g
}

// look returns the cells of a row for reading.
func (g *grid) look(y int) []cell {
	at := int(g.order[y]) * g.cols
	return g.cells[at : at+g.cols : at+g.cols]
}

// row returns the cells of a row for writing.
func (g *grid) row(y int) []cell {
	g.touched[g.order[y]] = true
	return g.look(y)
}

// clear blanks whole rows. One that nobody touched costs nothing, so that a program cannot
// make us blank a large screen with every few bytes.
func (g *grid) clear(from, to int) {
	for _, at := range g.order[from:to] {
		if g.touched[at] {
			clear(g.cells[int(at)*g.cols : (int(at)+1)*g.cols])
			g.touched[at] = false
		}
	}
}

// split makes sure that no wide character lies across the left edge of column x: one
// that is cut there disappears.
func split(row []cell, x int) {
	if x > 0 && x < len(row) && row[x]&tail != 0 {
		row[x-1], row[x] = 0, 0
	}
}

// erase blanks the columns from..to-1 of a row.
func (g *grid) erase(y, from, to int) {
	to = min(to, g.cols)
	if from >= to {
		return
	}
	row := g.row(y)
	split(row, from)
	split(row, to)
	clear(row[from:to])
}

// insert moves the columns from x on to the right by n; what leaves the row is lost.
func (g *grid) insert(y, x, n int) {
	row := g.row(y)
	n = min(n, g.cols-x)
	split(row, x)
	split(row, g.cols-n)
	copy(row[x+n:], row[x:])
	clear(row[x : x+n])
}

// remove takes n columns from x on out of a row; blanks come in on the right.
func (g *grid) remove(y, x, n int) {
	row := g.row(y)
	n = min(n, g.cols-x)
	split(row, x)
	split(row, x+n)
	copy(row[x:], row[x+n:])
	clear(row[g.cols-n:])
}

// scrollUp moves the rows top..bottom up by n, blanks come in at the bottom.
func (g *grid) scrollUp(top, bottom, n int) {
	n = min(n, bottom-top+1)
	g.clear(top, top+n)
	g.rotate(top, bottom, n)
}

// scrollDown moves the rows top..bottom down by n, blanks come in at the top.
func (g *grid) scrollDown(top, bottom, n int) {
	n = min(n, bottom-top+1)
	g.clear(bottom+1-n, bottom+1)
	g.rotate(top, bottom, bottom-top+1-n)
}

// rotate moves the rows top..bottom up by n; those that leave at the top come in at the
// bottom.
func (g *grid) rotate(top, bottom, n int) {
	rows := g.order[top : bottom+1]
	if n == 1 { // nearly always: a line feed
		first := rows[0]
		copy(rows, rows[1:])
		rows[len(rows)-1] = first
		return
	}
	moved := append(append(make([]uint16, 0, len(rows)), rows[n:]...), rows[:n]...)
	copy(rows, moved)
}

// resize gives the grid another size, with its rows from up on at the top.
func (g *grid) resize(cols, rows, up int) {
	next := newGrid(cols, rows)
	for y := 0; y < rows && y+up < g.rows; y++ {
		row := next.row(y)
		copy(row, g.look(y+up))
		if cols < g.cols && row[cols-1]&wide != 0 {
			row[cols-1] = 0
		}
	}
	*g = *next
}

// Bounds of what is kept about characters with marks: bytes of one of them, and how many
// different ones there are. The second is twice a usual screen and its alternate; one that is
// larger and full of different combinations loses some of the marks.
const (
	maxMarked      = 64
	maxMarkedKinds = 8192
)

// marks is a table of characters with marks on them. Cells hold numbers of its lines, so
// that moving cells stays copying numbers.
type marks struct {
	texts []string
	index map[string]cell
	spent int // marks written since the table was last swept
}

// append appends the text of a cell; a blank is a space.
func (m *marks) append(text []byte, c cell) []byte {
	switch code := c.code(); {
	case code == 0:
		return append(text, ' ')
	case code >= firstMarked:
		return append(text, m.texts[code-firstMarked]...)
	default:
		return utf8.AppendRune(text, rune(code))
	}
}

// mark puts a mark onto the cell. Without room the mark is lost.
func (s *Screen) mark(c *cell, r rune) {
	m := &s.marks
	var room [maxMarked + 2*utf8.UTFMax]byte
	text := utf8.AppendRune(m.append(room[:0], *c), r)
	if len(text) > maxMarked {
		return
	}
	m.spent++
	code, ok := m.index[string(text)]
	if !ok {
		if len(m.texts) >= maxMarkedKinds && !s.sweep() {
			return
		}
		if m.index == nil {
			m.index = make(map[string]cell)
		}
		code = cell(firstMarked + len(m.texts))
		m.texts = append(m.texts, string(text))
		m.index[m.texts[len(m.texts)-1]] = code
	}
	*c = *c&^codeMask | code
}

// sweep drops the lines of the table that no cell names any more, and reports whether there
// is room now. It looks at all cells, so it must have been earned by as many marks.
func (s *Screen) sweep() bool {
	old := s.marks
	if old.spent < s.cols*s.rows {
		return false
	}
	s.marks = marks{index: make(map[string]cell)}
	for _, g := range []*grid{s.main, s.alt} {
		if g == nil {
			continue
		}
		for i, c := range g.cells {
			if c.code() < firstMarked {
				continue
			}
			text := old.texts[c.code()-firstMarked]
			code, ok := s.marks.index[text]
			if !ok {
				code = cell(firstMarked + len(s.marks.texts))
				s.marks.texts = append(s.marks.texts, text)
				s.marks.index[text] = code
			}
			g.cells[i] = c&^codeMask | code
		}
	}
	return len(s.marks.texts) < maxMarkedKinds
}
