// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import "unicode/utf8"

// A decoder holds the beginning of a UTF-8 sequence. It decides as soon as a byte cannot
// belong to one, so each longest wrong beginning becomes one U+FFFD however it was cut: that is
// the practice that Unicode recommends (Unicode 15, section 3.9) and the WHATWG's decoder.
type decoder struct {
	need     int  // bytes that are missing
	low, top byte // bounds of the next byte
	r        rune // bits so far
}

// decode takes one byte in and hands what it completes to the parser.
func (s *Screen) decode(b byte) {
	d := &s.decoder
	if d.need > 0 {
		if b >= d.low && b <= d.top {
			d.low, d.top = 0x80, 0xbf
			d.r = d.r<<6 | rune(b&0x3f)
			if d.need--; d.need == 0 {
				s.parse(d.r)
			}
			return
		}
		d.need = 0
		s.parse(utf8.RuneError)
	}
	d.low, d.top = 0x80, 0xbf
	switch {
	case b < 0x80:
		s.parse(rune(b))
	case b >= 0xc2 && b <= 0xdf:
		d.need, d.r = 1, rune(b&0x1f)
	case b >= 0xe0 && b <= 0xef:
		d.need, d.r = 2, rune(b&0x0f)
		switch b {
		case 0xe0: // shorter forms are wrong
			d.low = 0xa0
		case 0xed: // surrogates are
			d.top = 0x9f
		}
	case b >= 0xf0 && b <= 0xf4:
		d.need, d.r = 3, rune(b&0x07)
		switch b {
		case 0xf0:
			d.low = 0x90
		case 0xf4: // beyond U+10FFFF
			d.top = 0x8f
		}
	default:
		s.parse(utf8.RuneError)
	}
}
