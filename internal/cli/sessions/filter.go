// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"bytes"
	"unicode/utf8"
)

// A filter lets through what only draws on a terminal: text, and control sequences that are
// complete and on the lists of sequences.go. All else is taken out. Questions are not on the lists:
// a terminal answers them by typing, and the screen of the session has answered already, once; each
// terminal that is attached, or that is shown the output later, would type another answer into the
// program, or into the user's shell. Neither is what leads outside of the output: files that the
// terminal reads, keys that it types, printers.
//
// Nothing is passed on before its end has come, and a byte that has no place in a sequence drops
// what is before it, so that what is left never joins to something else. The zero filter is ready.
type filter struct {
	held []byte // the beginning of a sequence or of a character whose end has not come
	skip bool   // the rest of a string that is too long is dropped
}

const (
	enq = 0x05
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
	// maxControl is the length of a control sequence, and maxString that of a string, in bytes:
	// pictures are strings. Longer ones are dropped.
	maxControl = 512
	maxString  = 4 << 20
)

// pass returns the output that may be shown. The slice is new or a part of p.
func (f *filter) pass(p []byte) []byte {
	if len(f.held) == 0 && !f.skip && plain(p) {
		return p
	}
	out := make([]byte, 0, len(p))
	for _, b := range p {
		out = f.take(out, b)
	}
	return out
}

// plain reports whether all of a text is characters of ASCII, tabs and line ends.
func plain(p []byte) bool {
	for _, b := range p {
		if b >= del || b < ' ' && b != '\n' && b != '\r' && b != '\t' {
			return false
		}
	}
	return true
}

// take takes one byte.
func (f *filter) take(out []byte, b byte) []byte {
	switch {
	case len(f.held) == 0:
		return f.begin(out, b)
	case f.held[0] != esc:
		return f.character(out, b)
	case len(f.held) == 1:
		return f.escape(out, b)
	case f.held[1] == '[':
		return f.control(out, b)
	case isString(f.held[1]):
		return f.text(out, b)
	}
	return f.intermediate(out, b)
}

// begin takes a byte outside of sequences.
func (f *filter) begin(out []byte, b byte) []byte {
	switch {
	case b == enq, b == can, b == sub:
		return out // a question, and the ends of sequences that are not there
	case b <= del && b != esc: // text; the bell, moves, character sets; controls that do nothing
		return append(out, b)
	case b == esc, b >= 0xc2 && b < 0xf5: // of a character of several bytes
		f.held = append(f.held, b)
	case b >= 0xa0: // no character; a terminal shows that
		return append(out, b)
	}
	return out // a control in eight bits, or half of a character
}

// character takes a byte of a character of several bytes.
func (f *filter) character(out []byte, b byte) []byte {
	if b < 0x80 || b >= 0xc0 {
		return f.again(f.broken(out), b)
	}
	f.held = append(f.held, b)
	if !utf8.FullRune(f.held) {
		return out
	}
	switch r, n := utf8.DecodeRune(f.held); {
	case r == utf8.RuneError && n == 1:
		out = f.broken(out)
	case r >= 0xa0: // below it are the controls of C1, which terminals obey in this form as well
		out = append(out, f.held...)
	}
	f.held = f.held[:0]
	return out
}

// broken passes on what is no character, except the bytes that are controls in eight bits.
func (f *filter) broken(out []byte) []byte {
	for _, b := range f.held {
		if b >= 0xa0 {
			out = append(out, b)
		}
	}
	f.held = f.held[:0]
	return out
}

// again drops what is held, and takes b as the beginning of something else.
func (f *filter) again(out []byte, b byte) []byte {
	f.held, f.skip = f.held[:0], false
	return f.begin(out, b)
}

// escape takes the byte after ESC.
func (f *filter) escape(out []byte, b byte) []byte {
	switch {
	case b == '[', isString(b), b >= ' ' && b < '0':
		f.held = append(f.held, b)
		return out
	case b < '0' || b >= del:
		return f.again(out, b)
	}
	return f.end(out, b, bytes.IndexByte([]byte(escapes), b) >= 0)
}

// intermediate takes a byte of an escape sequence with intermediates.
func (f *filter) intermediate(out []byte, b byte) []byte {
	switch {
	case b >= ' ' && b < '0' && len(f.held) < maxControl:
		f.held = append(f.held, b)
		return out
	case b < '0' || b >= del:
		return f.again(out, b)
	}
	return f.end(out, b, drawsEscape(string(f.held[1:]), b))
}

// control takes a byte of a control sequence: parameters, intermediates, a final byte.
func (f *filter) control(out []byte, b byte) []byte {
	last := f.held[len(f.held)-1]
	between := last >= ' ' && last < '0'
	switch {
	case b >= '@' && b < del:
		return f.end(out, b, drawsControl(f.held[2:], b))
	case len(f.held) >= maxControl, b < ' ', b >= del, b >= '0' && between:
		return f.again(out, b)
	}
	f.held = append(f.held, b)
	return out
}

// text takes a byte of a string: OSC, DCS, APC and their like, which end with ESC \ or BEL.
func (f *filter) text(out []byte, b byte) []byte {
	last := f.held[len(f.held)-1]
	switch {
	case b == bel && f.held[1] == ']' && last != esc, b == '\\' && last == esc && len(f.held) > 2:
		content := bytes.TrimSuffix(f.held[2:], []byte{esc})
		return f.end(out, b, !f.skip && utf8.Valid(content) && !hasC1(content) &&
			drawsString(f.held[1], string(content)))
	case last == esc && len(f.held) > 2: // it begins another sequence
		f.held, f.skip = append(f.held[:0], esc), false
		return f.escape(out, b)
	case b != esc && (b < ' ' || b == del):
		return f.again(out, b)
	case f.skip && b != esc:
		return out
	case len(f.held) >= maxString:
		f.skip, f.held = true, f.held[:2]
	}
	f.held = append(f.held, b)
	return out
}

// end ends a sequence, which is passed on if it only draws.
func (f *filter) end(out []byte, b byte, draws bool) []byte {
	if draws {
		out = append(append(out, f.held...), b)
	}
	f.held, f.skip = f.held[:0], false
	return out
}

// isString reports whether ESC and this byte begin a string: DCS, OSC, PM, APC, SOS, or the title
// that screen and tmux know.
func isString(b byte) bool { return bytes.IndexByte([]byte("P]^_Xk"), b) >= 0 }

// hasC1 reports whether a text in UTF-8 has controls of C1.
func hasC1(text []byte) bool {
	return bytes.ContainsFunc(text, func(r rune) bool { return r >= 0x80 && r < 0xa0 })
}
