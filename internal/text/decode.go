// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "unicode/utf8"

// decode takes one byte and hands the character that it completes to the parser. As
// soon as a byte cannot continue a character, what came before it becomes one U+FFFD:
// the practice that Unicode recommends (Unicode 15, section 3.9).
func (s *Screen) decode(b byte) {
	s.partial = append(s.partial, b)
	p := s.partial
	if !utf8.FullRune(p) {
		return
	}
	s.partial = p[:0]
	r, size := utf8.DecodeRune(p)
	s.parse(r)
	if size < len(p) {
		s.decode(b) // it begins something new
	}
}
