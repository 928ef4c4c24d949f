// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "unicode/utf8"

// A charset is the meaning of the characters of ASCII.
type charset uint8

const (
	ascii charset = iota
	british
	drawing // DEC Special Graphics
)

// drawn is the DEC Special Graphics set from "_" to "~" (VT102 User Guide, table 5-13).
var drawn = [...]rune{' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼',
	'⎺', '⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·'}

// translate returns what the character is in the set in use.
func (c *cursor) translate(r rune) rune {
	switch set := c.sets[c.shift]; {
	case set == british && r == '#':
		return '£'
	case set == drawing && r >= '_' && r <= '~':
		return drawn[r-'_']
	}
	return r
}

// print puts a character at the cursor.
func (s *Screen) print(r rune) {
	c := &s.cursor
	r = c.translate(r)
	if invisible(r) {
		return
	}
	w := cells(r)
	if w == 0 {
		s.join(r)
		return
	}
	if w > s.cols {
		return
	}
	s.joined = true
	if c.x+w > s.cols {
		if s.mode.nowrap {
			c.x = s.cols - 1
			if w == 2 { // there is no room, as in xterm.js
				s.joined = false
				return
			}
		} else {
			s.g.erase(c.y, c.x, s.cols)
			c.x = 0
			s.down()
		}
	}
	if s.mode.insert {
		s.g.insert(c.y, c.x, w)
	}
	row := s.g.row(c.y)
	split(row, c.x)
	split(row, c.x+w)
	row[c.x] = cell(r)
	if w == 2 {
		row[c.x] |= wide
		row[c.x+1] = tail
	}
	c.x += w
}

// printASCII is print for printable characters of ASCII, which most output consists of. It is
// two to seven times as fast.
func (s *Screen) printASCII(p []byte) {
	c := &s.cursor
	if s.mode.insert || s.mode.nowrap || c.sets[c.shift] != ascii {
		for _, b := range p {
			s.print(rune(b))
		}
		return
	}
	s.joined = true
	for len(p) > 0 {
		if c.x >= s.cols {
			c.x = 0
			s.down()
		}
		n := min(len(p), s.cols-c.x)
		row := s.g.row(c.y)
		split(row, c.x)
		split(row, c.x+n)
		for i, b := range p[:n] {
			row[c.x+i] = cell(b)
		}
		c.x += n
		p = p[n:]
	}
}

// join puts a character without a width onto the one on the left of the cursor. Without
// such a one it is lost.
func (s *Screen) join(r rune) {
	if c := s.left(); c != nil {
		s.mark(c, r)
	}
}

// left returns the cell of the character on the left of the cursor, or nil.
func (s *Screen) left() *cell {
	x := s.cursor.x - 1
	if x < 0 {
		return nil
	}
	row := s.g.row(s.cursor.y)
	if row[x]&tail != 0 {
		x--
	}
	return &row[x]
}

// maxRepeat bounds REP, so that a few bytes cannot cause much work. Programs repeat within a
// line; it is two of the widest ones.
const maxRepeat = 2 * maxSide

// repeat is REP: it prints the last character n times more, unless other input came since.
func (s *Screen) repeat(n int) {
	c := s.left()
	if !s.joined || c == nil {
		return
	}
	last := *c
	r, _ := utf8.DecodeRune(s.marks.append(nil, last))
	for range min(n, maxRepeat) {
		s.print(r)
		if last.code() >= firstMarked {
			*s.left() = last
		}
	}
}

// execute executes a C0 control.
func (s *Screen) execute(r rune) {
	c := &s.cursor
	s.joined = false
	switch r {
	case '\b':
		c.x = max(0, min(c.x, s.cols-1)-1)
	case '\t':
		s.tab(1)
	case '\n', '\v', '\f':
		if s.mode.newline {
			c.x = 0
		}
		s.index()
	case '\r':
		c.x = 0
	case 0x0e: // SO
		c.shift = 1
	case 0x0f: // SI
		c.shift = 0
	}
}

// down moves the cursor to the next row, and scrolls at the bottom margin.
func (s *Screen) down() {
	switch c := &s.cursor; {
	case c.y == s.g.bottom:
		s.scrollUp(s.g.top, s.g.bottom, 1)
	case c.y < s.rows-1:
		c.y++
	}
}

// index is IND.
func (s *Screen) index() {
	s.down()
	s.cursor.x = min(s.cursor.x, s.cols-1)
}

// nextLine is NEL.
func (s *Screen) nextLine() {
	s.cursor.x = 0
	s.down()
}

// reverseIndex is RI.
func (s *Screen) reverseIndex() {
	c := &s.cursor
	c.x = min(c.x, s.cols-1)
	switch {
	case c.y == s.g.top:
		s.g.scrollDown(s.g.top, s.g.bottom, 1)
	case c.y > 0:
		c.y--
	}
}

// tab moves n tab stops to the right, or to the left for a negative n. A cursor that waits to
// wrap does not move.
func (s *Screen) tab(n int) {
	c := &s.cursor
	if c.x >= s.cols {
		return
	}
	for ; n > 0 && c.x < s.cols-1; n-- {
		for c.x++; c.x < s.cols-1 && !s.tabs[c.x]; {
			c.x++
		}
	}
	for ; n < 0 && c.x > 0; n++ {
		for c.x--; c.x > 0 && !s.tabs[c.x]; {
			c.x--
		}
	}
}

// dispatchEscape executes an escape sequence.
func (s *Screen) dispatchEscape(final rune) {
	c := &s.cursor
	switch s.parser.intermediate {
	case 0:
		s.simpleEscape(final)
	case '(', ')', '*', '+':
		set := ascii
		switch final {
		case '0':
			set = drawing
		case 'A':
			set = british
		}
		c.sets[s.parser.intermediate-'('] = set
	case '%': // UTF-8 is always on, but ASCII comes back
		if final == '@' || final == 'G' {
			c.sets[0], c.shift = ascii, 0
		}
	case '#':
		if final == '8' {
			s.align()
		}
	}
}

// simpleEscape executes an escape sequence of two characters.
func (s *Screen) simpleEscape(final rune) {
	switch final {
	case '7':
		s.save()
	case '8':
		s.restore()
	case '=', '>':
		s.state.keypad = final == '='
	case 'D':
		s.index()
	case 'E':
		s.nextLine()
	case 'H':
		s.tabs[min(s.cursor.x, s.cols-1)] = true
	case 'M':
		s.reverseIndex()
	case 'c':
		s.reset()
	case 'n':
		s.cursor.shift = 2
	case 'o':
		s.cursor.shift = 3
	}
}

// align is DECALN: a screen full of E, with default margins and the cursor at the top left.
func (s *Screen) align() {
	s.g.top, s.g.bottom = 0, s.rows-1
	s.cursor.origin = false
	s.cursor.x, s.cursor.y = 0, 0
	for y := range s.rows {
		row := s.g.row(y)
		for x := range row {
			row[x] = 'E'
		}
	}
}

// save is DECSC.
func (s *Screen) save() { s.saved[s.screenIndex()] = s.cursor }

// restore is DECRC. A cursor that waited to wrap no longer does.
func (s *Screen) restore() {
	s.cursor = s.saved[s.screenIndex()]
	s.place(s.cursor.x, s.cursor.y)
}

// screenIndex is 0 for the main screen and 1 for the alternate one.
func (s *Screen) screenIndex() int {
	if s.g == s.main {
		return 0
	}
	return 1
}

// place moves the cursor to a cell, or to the nearest cell that it may be in.
func (s *Screen) place(x, y int) {
	first, last := 0, s.rows-1
	if s.cursor.origin {
		first, last = s.g.top, s.g.bottom
	}
	s.cursor.x = max(0, min(x, s.cols-1))
	s.cursor.y = max(first, min(y, last))
}

// address moves the cursor to a cell that a program names; in origin mode rows count from
// the margin.
func (s *Screen) address(x, y int) {
	if s.cursor.origin {
		y += s.g.top
	}
	s.place(x, y)
}

// vertical moves the cursor by n rows. From inside of the margins it does not pass them.
func (s *Screen) vertical(n int) {
	c := &s.cursor
	y := c.y + n
	if c.y >= s.g.top {
		y = max(y, s.g.top)
	}
	if c.y <= s.g.bottom {
		y = min(y, s.g.bottom)
	}
	s.place(c.x, y)
}

// dispatchCSI executes a control sequence.
func (s *Screen) dispatchCSI(final rune) {
	p := &s.parser
	if p.excess {
		return
	}
	switch [2]byte{p.prefix, p.intermediate} {
	case [2]byte{}:
		if !s.movement(final) && !s.editing(final) {
			s.setting(final)
		}
	case [2]byte{'?'}:
		switch final {
		case 'J', 'K': // no cell is protected, so the selective forms are the plain ones
			s.editing(final)
		case 'h', 'l':
			for i := range min(p.n, maxParams) {
				s.setPrivate(p.params[i], final == 'h')
			}
		case 'n':
			s.report(true)
		}
	case [2]byte{'>'}:
		if final == 'c' && p.param(0, 0) == 0 {
			s.reply("\x1b[>0;10;0c")
		}
	case [2]byte{0, '!'}:
		if final == 'p' {
			s.softReset()
		}
	case [2]byte{0, '$'}, [2]byte{'?', '$'}:
		if final == 'p' {
			s.reportMode()
		}
	}
}

// movement executes the sequences that only move the cursor.
func (s *Screen) movement(final rune) bool {
	c, n := &s.cursor, s.parser.param(0, 1)
	x := min(c.x, s.cols-1)
	switch final {
	case 'A': // CUU
		s.vertical(-n)
	case 'B': // CUD
		s.vertical(n)
	case 'C', 'a': // CUF HPR
		s.place(x+n, c.y)
	case 'D': // CUB
		s.place(x-n, c.y)
	case 'E': // CNL
		s.vertical(n)
		c.x = 0
	case 'F': // CPL
		s.vertical(-n)
		c.x = 0
	case 'G', '`': // CHA HPA
		s.place(n-1, c.y)
	case 'H', 'f': // CUP HVP
		s.address(s.parser.param(1, 1)-1, n-1)
	case 'I': // CHT
		s.tab(n)
	case 'Z': // CBT
		s.tab(-n)
	case 'd': // VPA
		s.address(x, n-1)
	case 'e': // VPR
		s.place(x, c.y+n)
	default:
		return false
	}
	return true
}

// editing executes the sequences that change cells.
func (s *Screen) editing(final rune) bool {
	g, c, n := s.g, &s.cursor, s.parser.param(0, 1)
	x := min(c.x, s.cols-1)
	switch final {
	case '@': // ICH
		c.x = x
		g.insert(c.y, x, n)
	case 'P': // DCH
		c.x = x
		g.remove(c.y, x, n)
	case 'X': // ECH
		c.x = x
		g.erase(c.y, x, x+n)
	case 'J':
		s.eraseDisplay()
	case 'K':
		s.eraseLine(s.parser.param(0, 0))
	case 'L', 'M': // IL DL
		c.x = x
		if c.y < g.top || c.y > g.bottom {
			break
		}
		c.x = 0
		if final == 'L' {
			g.scrollDown(c.y, g.bottom, n)
		} else {
			g.scrollUp(c.y, g.bottom, n)
		}
	case 'S': // SU
		s.scrollUp(g.top, g.bottom, n)
	case 'T': // SD; with more parameters it asks for mouse highlighting
		if s.parser.n <= 1 {
			g.scrollDown(g.top, g.bottom, n)
		}
	case 'b': // REP
		s.repeat(n)
	default:
		return false
	}
	return true
}

// eraseLine is EL. As in xterm.js the cursor can be behind the last column, with nothing to
// erase to its right.
func (s *Screen) eraseLine(what int) {
	c := &s.cursor
	switch what {
	case 0:
		s.g.erase(c.y, c.x, s.cols)
	case 1:
		s.g.erase(c.y, 0, c.x+1)
	case 2:
		s.g.erase(c.y, 0, s.cols)
	}
}

// eraseDisplay is ED. There is no scrollback, so 3 does nothing.
func (s *Screen) eraseDisplay() {
	what := s.parser.param(0, 0)
	if what > 2 {
		return
	}
	s.eraseLine(what)
	if what != 0 {
		s.g.clear(0, s.cursor.y)
	}
	if what != 1 {
		s.g.clear(s.cursor.y+1, s.rows)
	}
}
