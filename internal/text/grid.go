// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"slices"
	"unicode/utf8"
)

// A cell is one place of the grid: a code in its low 21 bits and two flags. Zero is blank.
// A code up to U+10FFFF is a character; a larger one names a character with marks on it.
type cell uint32

const (
	codeMask cell = 1<<21 - 1
	// wide marks a cell whose character also covers the next one, which is marked tail and
	// has no code. The two are always next to each other.
	wide cell = 1 << 31
	tail cell = 1 << 30

	firstMarked = utf8.MaxRune + 1
)

func (c cell) code() cell { return c & codeMask }

// A grid is one of the two screens. Its order of rows is separate, so that scrolling moves
// numbers instead of cells.
type grid struct {
	cols, rows  int
	cells       []cell
	order       []uint16 // where row y begins, in rows
	touched     []bool   // whether the row at that place may contain something
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

// clear blanks whole rows. An untouched row costs nothing, so that a program cannot cause
// work for a large screen with every few bytes.
func (g *grid) clear(from, to int) {
	for _, at := range g.order[from:to] {
		if g.touched[at] {
			clear(g.cells[int(at)*g.cols : (int(at)+1)*g.cols])
			g.touched[at] = false
		}
	}
}

// split removes a wide character that lies across the left edge of column x.
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

// insert moves the columns from x on to the right by n; cells that leave the row are lost.
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
	slices.Reverse(rows[:n])
	slices.Reverse(rows[n:])
	slices.Reverse(rows)
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

// Bounds of characters with marks: bytes of one of them, and the number of different ones.
// The second is twice a usual screen and its alternate; a larger screen full of different
// combinations loses some of the marks.
const (
	maxMarked      = 64
	maxMarkedKinds = 8192
)

// marks is a table of characters with marks on them. Cells contain numbers of its lines.
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

// add returns the code of a text, which gets a new line unless it has one.
func (m *marks) add(text string) cell {
	code, ok := m.index[text]
	if !ok {
		if m.index == nil {
			m.index = make(map[string]cell)
		}
		code = cell(firstMarked + len(m.texts))
		m.texts = append(m.texts, text)
		m.index[text] = code
	}
	return code
}

// mark puts a mark onto the cell. Without room the mark is lost.
func (s *Screen) mark(c *cell, r rune) {
	text := utf8.AppendRune(s.marks.append(nil, *c), r)
	if len(text) > maxMarked {
		return
	}
	s.marks.spent++
	if len(s.marks.texts) < maxMarkedKinds || s.sweep() {
		*c = *c&^codeMask | s.marks.add(string(text))
	}
}

// sweep drops the lines of the table that no cell names, and reports whether there is room
// now. It reads all cells, so it runs once per that many marks.
func (s *Screen) sweep() bool {
	old := s.marks
	if old.spent < s.cols*s.rows {
		return false
	}
	s.marks = marks{}
	for _, g := range []*grid{s.main, s.alt} {
		if g == nil {
			continue
		}
		for i, c := range g.cells {
			if c.code() >= firstMarked {
				g.cells[i] = c&^codeMask | s.marks.add(old.texts[c.code()-firstMarked])
			}
		}
	}
	return len(s.marks.texts) < maxMarkedKinds
}
