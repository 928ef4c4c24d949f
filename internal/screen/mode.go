// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"slices"
	"strconv"
)

// maxReplies is how many bytes of answers wait to be fetched; what comes then is not answered.
const maxReplies = 1024

// setting carries out the sequences about modes, margins, tab stops, titles, and questions.
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
			s.setTab(min(s.cursor.x, s.cols-1), false)
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

// stackTitle pushes and pops the title (xterm's CSI 22 t and 23 t); icons and all other
// requests about the window are ignored, reports first of all.
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
	switch mode {
	case 2: // DECANM: its only trace here is that the sets are ASCII again
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

// alternate shows the alternate screen, blank whenever one comes to it, or the main one.
// The cursor stays where it is. The grid is kept, because a program may go to and fro
// for nothing.
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

// softReset is DECSTR: what a program may have left behind is undone, what is on the
// screen stays.
func (s *Screen) softReset() {
	s.mode = modes{newline: s.mode.newline}
	s.cursor = cursor{x: s.cursor.x, y: s.cursor.y}
	s.saved[s.screenIndex()] = cursor{}
	s.g.top, s.g.bottom = 0, s.rows-1
}

// report is DSR and, as the private form, DECXCPR: all is well, or where the cursor is.
func (s *Screen) report(private bool) {
	switch s.parser.param(0, 0) {
	case 5:
		if !private {
			s.reply("\x1b[0n")
		}
	case 6:
		y := s.cursor.y
		if s.cursor.origin {
			y -= s.g.top
		}
		form := "\x1b["
		if private {
			form = "\x1b[?"
		}
		s.reply(form + strconv.Itoa(y+1) + ";" + strconv.Itoa(min(s.cursor.x, s.cols-1)+1) + "R")
	}
}

// reportMode is DECRQM. Only modes that are known get an answer, so that the number in it
// is one of ours.
func (s *Screen) reportMode() {
	p := &s.parser
	mode := p.param(0, 0)
	var on bool
	switch {
	case p.prefix == 0 && mode == 4:
		on = s.mode.insert
	case p.prefix == 0 && mode == 20:
		on = s.mode.newline
	case p.prefix == 0:
		return
	case mode == 6:
		on = s.cursor.origin
	case mode == 7:
		on = !s.mode.nowrap
	case mode == 25:
		on = !s.mode.hidden
	case mode == 47, mode == 1047, mode == 1049:
		on = s.g != s.main
	default:
		return
	}
	value, form := ";2$y", "\x1b["
	if on {
		value = ";1$y"
	}
	if p.prefix != 0 {
		form = "\x1b[?"
	}
	s.reply(form + strconv.Itoa(mode) + value)
}

// reply keeps an answer for Replies.
func (s *Screen) reply(text string) {
	if len(s.replies)+len(text) <= maxReplies {
		s.replies = append(s.replies, text...)
	}
}

// Replies returns what a terminal would have sent to the program since the last call, in
// answer to its questions: what it is (DA1, DA2), whether it works and where the cursor is (DSR 5
// and 6), and which of the modes that matter here are on (DECRQM). Nil means nothing was asked. At
// most 1024 bytes wait; questions beyond that stay without an answer.
func (s *Screen) Replies() []byte {
	replies := s.replies
	s.replies = nil
	return replies
}
