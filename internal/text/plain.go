// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"strings"
)

// A Plain takes control sequences out of what a program prints for a terminal, so that what is left is
// what is to be read: "\x1b[1mready\x1b[0m" becomes "ready". Sequences that move the cursor become what
// separates words for a reader: a newline, or as many spaces as columns. A carriage return and a newline are
// one newline; a carriage return alone, after which a line is written anew, is one as well. Other
// controls, and strings such as titles and the addresses of links, become nothing. Output can be cut
// anywhere: the state is kept. The zero value is ready.
type Plain struct {
	Returns bool // carriage returns are text as well
	state   plainState
	length  int // of the control sequence so far
	param   int // its first parameter
	params  int // how many were begun
	kind    byte
}

// WithoutControls returns all that a [Plain] makes of s, which ends there.
func WithoutControls(s string) string {
	var t Plain
	var b strings.Builder
	for p := []byte(s); len(p) > 0; {
		n, plain, _ := t.Next(p)
		b.Write(plain)
		p = p[n:]
	}
	return b.String()
}

type plainState uint8

const (
	plainText    plainState = iota
	afterReturn             // a carriage return, whose newline may come
	afterC2                 // half of a character that may be a control of C1
	inEscape                // ESC, or ESC and intermediates
	inControl               // ESC [
	inString                // ESC ] and the like
	stringEscape            // ESC in a string
)

const (
	maxPlainControl = 512 // a longer sequence is none, and what follows is text
	maxPlainSpaces  = 256
)

var plainBreak = []byte{'\n'}

// Next takes bytes from the beginning of p, which must not be empty, and returns how many, and the text that
// they end with. With same the text is the last of these bytes; otherwise it stands for them, and is valid
// until the next call. It may take no byte, and then returns text.
func (t *Plain) Next(p []byte) (n int, text []byte, same bool) {
	b := p[0]
	switch t.state {
	case afterReturn:
		return t.lineEnd(b)
	case afterC2:
		return t.c1(b)
	case inEscape:
		return t.escape(b)
	case inControl:
		return t.control(b)
	case inString, stringEscape:
		return t.string(b)
	}
	for n < len(p) && (p[n] >= ' ' && p[n] != 0x7f && p[n] != 0xc2 || p[n] == '\n' || p[n] == '\t' ||
		p[n] == '\r' && t.Returns) {
		n++
	}
	if n > 0 {
		return n, p[:n], true
	}
	switch b {
	case '\r':
		t.state = afterReturn
	case 0xc2:
		t.state = afterC2
	case 0x1b:
		t.state, t.length = inEscape, 0
	}
	return 1, nil, false
}

// lineEnd takes the byte after a carriage return.
func (t *Plain) lineEnd(b byte) (int, []byte, bool) {
	if b == '\r' {
		return 1, nil, false // terminals make several of them of one
	}
	t.state = plainText
	if b == '\n' {
		return 1, plainBreak, false
	}
	return 0, plainBreak, false
}

// c1 takes the second byte of a character from U+0080 to U+00BF. Those below U+00A0 are controls.
func (t *Plain) c1(b byte) (int, []byte, bool) {
	t.state = plainText
	switch {
	case b >= 0xa0 && b <= 0xbf:
		return 1, []byte{0xc2, b}, false
	case b < 0x80 || b > 0xbf:
		return 0, []byte{0xc2}, false // no character
	}
	t.state, t.length = inEscape, 0
	return t.escape(b - 0x40)
}

// escape takes a byte after ESC.
func (t *Plain) escape(b byte) (int, []byte, bool) {
	t.length++
	switch {
	case b < ' ' || b >= 0x7f || t.length > maxPlainControl:
		return t.broken()
	case b < '0':
		return 1, nil, false
	case t.length > 1: // intermediates: a character set
	case b == '[':
		t.state, t.length, t.param, t.params, t.kind = inControl, 0, 0, 1, 0
		return 1, nil, false
	case bytes.IndexByte([]byte("P]^_Xk"), b) >= 0:
		t.state, t.kind = inString, b
		return 1, nil, false
	case b == 'D', b == 'E', b == 'M': // to another line
		t.state = plainText
		return 1, plainBreak, false
	}
	t.state = plainText
	return 1, nil, false
}

// broken ends a sequence at a byte that has no place in it.
func (t *Plain) broken() (int, []byte, bool) {
	t.state = plainText
	return 0, nil, false
}

// control takes a byte of a control sequence.
func (t *Plain) control(b byte) (int, []byte, bool) {
	t.length++
	switch {
	case b < ' ' || b >= 0x7f || t.length > maxPlainControl:
		return t.broken()
	case b >= '@':
		t.state = plainText
		return 1, t.move(b), false
	case b >= '0' && b <= '9' && t.params == 1:
		t.param = min(t.param*10+int(b-'0'), maxPlainSpaces)
	case b == ';' || b == ':':
		t.params++
	case b < '0' || b > '9':
		t.kind = b // private, or with intermediates: it moves nothing
	}
	return 1, nil, false
}

// move returns the text for a control sequence that moves the cursor.
func (t *Plain) move(final byte) []byte {
	if t.kind != 0 {
		return nil
	}
	switch final {
	case 'A', 'B', 'E', 'F', 'H', 'd', 'e', 'f': // to another line
		return plainBreak
	case 'G', '`': // to a column
		if t.param <= 1 {
			return plainBreak
		}
		return []byte{' '}
	case 'I':
		return []byte{' '}
	case 'C', 'a':
		return bytes.Repeat([]byte{' '}, max(t.param, 1))
	}
	return nil
}

// string takes a byte of a string, which ends with ESC \ or BEL. No control has a place in one.
func (t *Plain) string(b byte) (int, []byte, bool) {
	switch {
	case t.state == stringEscape && b == '\\', b == '\a' && t.kind == ']':
		t.state = plainText
	case t.state == stringEscape:
		t.state, t.length = inEscape, 0
		return t.escape(b)
	case b == 0x1b:
		t.state = stringEscape
	case b < ' ' || b == 0x7f:
		return t.broken()
	}
	return 1, nil, false
}
