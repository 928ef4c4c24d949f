// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"slices"
	"strconv"
)

// maxReplies is how many bytes of answers wait to be fetched.
const maxReplies = 1024

// setting executes the sequences about modes, margins, tab stops, titles, and questions.
func (s *Screen) setting(final rune) {
	p := &s.parser
	switch final {
	case 'c': // DA1: a VT100 with its advanced video option
		if p.param(0, 0) == 0 {
			s.reply("\x1b[?1;2c")
		}
	case 'g': // TBC
		switch p.param(0, 0) {
		case 0:
			s.tabs[min(s.cursor.x, s.cols-1)] = false
		case 3:
			clear(s.tabs[:])
		}
	case 'h', 'l':
		for _, mode := range p.params[:min(p.n, maxParams)] {
			switch mode {
			case 4:
				s.mode.insert = final == 'h'
			case 20:
				s.mode.newline = final == 'h'
			}
		}
	case 'n':
		s.report(false)
	case 'r':
		s.setMargins()
	case 's':
		s.save()
	case 'u':
		s.restore()
	case 't':
		s.stackTitle()
	}
}

// setMargins is DECSTBM.
func (s *Screen) setMargins() {
	top, bottom := s.parser.param(0, 1), s.parser.param(1, s.rows)
	bottom = min(bottom, s.rows)
	if top < bottom {
		s.g.top, s.g.bottom = top-1, bottom-1
		s.address(0, 0)
	}
}

// stackTitle pushes and pops the title (xterm's CSI 22 t and 23 t). Icons and other
// requests about the window are ignored; a report of the title would let a program type.
func (s *Screen) stackTitle() {
	p := &s.parser
	if which := p.param(1, 0); which != 0 && which != 2 {
		return
	}
	switch n := len(s.titles); p.param(0, 0) {
	case 22:
		if n == maxTitles {
			s.titles = slices.Delete(s.titles, 0, 1)
		}
		s.titles = append(s.titles, s.title)
	case 23:
		if n > 0 {
			s.title = s.titles[n-1]
			s.titles = s.titles[:n-1]
		}
	}
}

// setPrivate is DECSET and DECRST for one mode.
func (s *Screen) setPrivate(mode uint16, on bool) {
	s.state.note(strconv.Itoa(int(mode)), on)
	switch mode {
	case 2: // DECANM: its only effect here is that the sets are ASCII again
		if on {
			s.cursor.sets = [4]charset{}
		}
	case 6:
		s.cursor.origin = on
		s.address(0, 0)
	case 7:
		s.mode.nowrap = !on
	case 25:
		s.mode.hidden = !on
	case 47, 1047:
		s.alternate(on)
	case 1048:
		if on {
			s.save()
		} else {
			s.restore()
		}
	case 1049:
		if on {
			s.save()
		}
		s.alternate(on)
		if !on {
			s.restore()
		}
	}
}

// alternate shows the alternate screen, blank at first, or the main one. The cursor does
// not move. The grid is kept, because a program can switch often.
func (s *Screen) alternate(on bool) {
	switch {
	case on && s.g == s.main:
		if s.alt == nil {
			s.alt = newGrid(s.cols, s.rows)
		}
		s.alt.clear(0, s.rows)
		s.alt.top, s.alt.bottom = 0, s.rows-1
		s.main.leftAt = s.cursor.y
		s.g = s.alt
	case !on:
		s.g = s.main
	}
}

// softReset is DECSTR: it resets modes, margins and cursor state, and leaves the cells.
func (s *Screen) softReset() {
	s.mode = modes{newline: s.mode.newline}
	s.cursor = cursor{x: s.cursor.x, y: s.cursor.y}
	s.saved[s.screenIndex()] = cursor{}
	s.g.top, s.g.bottom = 0, s.rows-1
}

// report is DSR and, as the private form, DECXCPR: the state "ready", or the position of
// the cursor.
func (s *Screen) report(private bool) {
	y := s.cursor.y
	if s.cursor.origin {
		y -= s.g.top
	}
	switch what := s.parser.param(0, 0); {
	case what == 5 && !private:
		s.reply("\x1b[0n")
	case what == 6:
		s.reply(fmt.Sprintf("\x1b[%s%d;%dR", sign(private), y+1, min(s.cursor.x, s.cols-1)+1))
	}
}

// reportMode is DECRQM. Only modes that are known get an answer, so that the number in it
// is one of ours.
func (s *Screen) reportMode() {
	private, mode := s.parser.prefix != 0, s.parser.param(0, 0)
	known := map[int]bool{4: s.mode.insert, 20: s.mode.newline}
	if private {
		alternate := s.g != s.main
		known = map[int]bool{6: s.cursor.origin, 7: !s.mode.nowrap, 25: !s.mode.hidden, 47: alternate,
			1047: alternate, 1049: alternate}
	}
	on, ok := known[mode]
	switch {
	case ok && on:
		s.reply(fmt.Sprintf("\x1b[%s%d;1$y", sign(private), mode))
	case ok:
		s.reply(fmt.Sprintf("\x1b[%s%d;2$y", sign(private), mode))
	}
}

// sign returns what private sequences have behind CSI.
func sign(private bool) string {
	if private {
		return "?"
	}
	return ""
}

// reply keeps an answer for Replies.
func (s *Screen) reply(text string) {
	if len(s.replies)+len(text) <= maxReplies {
		s.replies = append(s.replies, text...)
	}
}

// Replies returns what a terminal would have sent to the program since the last call in
// answer to its questions: type (DA1, DA2), state and cursor position (DSR 5 and 6), and
// known modes (DECRQM). Nil means that there were none. At most 1024 bytes wait; later
// questions get no answer.
func (s *Screen) Replies() []byte {
	replies := s.replies
	s.replies = nil
	return replies
}
