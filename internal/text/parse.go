// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"unicode"
	"unicode/utf8"
)

// The states are those of the diagram at https://vt100.net/emu/dec_ansi_parser. The five
// of DCS and the one of SOS, PM and APC are a single one here, because those strings are
// ignored.
type state uint8

const (
	ground state = iota
	escapeState
	escapeIntermediate
	csiEntry
	csiParam
	csiIntermediate
	csiIgnore
	oscString
	otherString
)

const (
	// maxParams is how many parameters of a sequence count; DEC's terminals had 16.
	maxParams = 32
	// maxParam is the largest value of a parameter. xterm's is the same.
	maxParam = 65535
	// maxTitle is how many bytes of a title are kept.
	maxTitle = 1024
	// maxOSC is how many bytes of an OSC string are kept: the number in front, and a title
	// with characters that will be dropped.
	maxOSC = 2 * maxTitle
	// maxString is how many characters a string can have; then its end counts as forgotten.
	// Images in DCS and OSC strings are this long; xterm.js has the same bound.
	maxString = 10_000_000
	// maxTitles is how many titles can be pushed; xterm keeps ten.
	maxTitles = 10
)

// A parser is the place in a sequence, with what was collected of it.
type parser struct {
	state        state
	prefix       byte // one of < = > ? or zero
	intermediate byte // the only one that counts, or zero
	excess       bool // more intermediates than any sequence here has
	sub          bool // in a part after a colon, which is skipped
	n            int  // of parameters begun
	params       [maxParams]uint16
	osc          []byte
	length       int // of the string
}

// clear forgets what was collected.
func (p *parser) clear() {
	p.prefix, p.intermediate, p.excess, p.sub = 0, 0, false, false
	p.n = 0
}

// param returns parameter i, or otherwise if it is zero or missing.
func (p *parser) param(i, otherwise int) int {
	if i < p.n && p.params[i] != 0 {
		return int(p.params[i])
	}
	return otherwise
}

// collect takes a byte that changes the meaning of a sequence.
func (p *parser) collect(r rune) {
	if p.intermediate != 0 {
		p.excess = true
	}
	p.intermediate = byte(r)
}

// digit takes a byte of the parameters: a digit, a semicolon or a colon.
func (p *parser) digit(r rune) {
	if p.n == 0 {
		p.n, p.params[0] = 1, 0
	}
	switch {
	case r == ';':
		p.sub = false
		if p.n < maxParams {
			p.params[p.n] = 0
		}
		p.n = min(p.n+1, maxParams+1)
	case r == ':':
		p.sub = true
	case !p.sub && p.n <= maxParams:
		v := &p.params[p.n-1]
		*v = uint16(min(int(*v)*10+int(r-'0'), maxParam))
	}
}

// parse takes one character.
func (s *Screen) parse(r rune) {
	p := &s.parser
	switch {
	case r >= 0x80 && r < 0xa0:
		s.parseC1(r)
		return
	case r == 0x1b:
		s.endString(true)
		p.clear()
		p.state = escapeState
		return
	case r == 0x18 || r == 0x1a: // CAN and SUB abort a sequence
		s.endString(false)
		p.state = ground
		s.joined = false
		return
	}
	switch p.state {
	case ground:
		if r < 0x20 {
			s.execute(r)
		} else if r != 0x7f {
			s.print(r)
		}
	case oscString:
		s.parseOSC(r)
	case otherString:
		s.lengthen()
	default:
		if r < 0x20 {
			s.execute(r)
		} else if r > 0x7f {
			p.state = ground // it does not belong in a sequence
		} else if r != 0x7f {
			s.parseSequence(r)
		}
	}
}

// parseC1 handles the 8-bit controls, which are encoded as any other character here. They
// are valid anywhere, end what was going on, and have the meaning of ESC and a letter.
func (s *Screen) parseC1(r rune) {
	s.endString(r == 0x9c)
	s.parser.clear()
	s.parser.state = escapeState
	s.parseEscape(r - 0x40)
}

// parseSequence handles a printable character in an escape or control sequence.
func (s *Screen) parseSequence(r rune) {
	p := &s.parser
	switch p.state {
	case escapeState, escapeIntermediate:
		s.parseEscape(r)
	case csiIgnore:
		if r >= 0x40 {
			p.state = ground
		}
	default:
		switch {
		case r >= 0x40:
			p.state = ground
			s.dispatchCSI(r)
			s.joined = false
		case r < 0x30:
			p.collect(r)
			p.state = csiIntermediate
		case p.state == csiIntermediate || r >= 0x3c && p.state != csiEntry:
			p.state = csiIgnore
		case r >= 0x3c:
			p.prefix = byte(r)
			p.state = csiParam
		default:
			p.digit(r)
			p.state = csiParam
		}
	}
}

// parseEscape handles a character after ESC.
func (s *Screen) parseEscape(r rune) {
	p := &s.parser
	if r < 0x30 {
		p.collect(r)
		p.state = escapeIntermediate
		return
	}
	if p.state == escapeState {
		switch r {
		case '[':
			p.clear()
			p.state = csiEntry
			return
		case ']':
			s.beginString(oscString)
			return
		case 'P', 'X', '^', '_':
			s.beginString(otherString)
			return
		}
	}
	p.state = ground
	if !p.excess {
		s.dispatchEscape(r)
	}
	s.joined = false
}

// beginString enters the state of a string.
func (s *Screen) beginString(kind state) {
	p := &s.parser
	p.state = kind
	p.osc = p.osc[:0]
	p.length = 0
}

// lengthen counts a character of a string, and ends a string that is too long.
func (s *Screen) lengthen() {
	p := &s.parser
	if p.length++; p.length >= maxString {
		p.state = ground
		p.osc = nil
	}
}

// parseOSC takes a character of an operating system command.
func (s *Screen) parseOSC(r rune) {
	p := &s.parser
	if r == 0x07 { // xterm's own end
		s.endString(true)
		p.state = ground
		s.joined = false
		return
	}
	if r >= 0x20 && len(p.osc)+utf8.UTFMax <= maxOSC {
		p.osc = utf8.AppendRune(p.osc, r)
	}
	s.lengthen()
}

// endString executes the string that ends here, if there is one and it was not aborted.
func (s *Screen) endString(whole bool) {
	p := &s.parser
	if p.state != oscString {
		return
	}
	if whole {
		s.setTitle(p.osc)
	}
	p.osc = nil // titles are rare, so the memory is given back
}

// setTitle executes OSC 0 and 2; other commands are ignored.
func (s *Screen) setTitle(command []byte) {
	i := 0
	number := 0
	for i < len(command) && command[i] >= '0' && command[i] <= '9' {
		number = min(number*10+int(command[i]-'0'), maxParam)
		i++
	}
	if i == 0 || i == len(command) || command[i] != ';' || number != 0 && number != 2 {
		return
	}
	var title []byte
	for _, r := range string(command[i+1:]) {
		if unicode.IsControl(r) || invisible(r) {
			continue
		}
		if len(title)+utf8.RuneLen(r) > maxTitle {
			break
		}
		title = utf8.AppendRune(title, r)
	}
	s.title = string(title)
}
