// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Word returns s as it is, or in quotes where it is empty or has something that does not
// print. It is for a path or a name in a sentence.
func Word(s string) string {
	if s == "" || Line(s) != s {
		return Line(strconv.Quote(s)) // which leaves blank letters as they are
	}
	return s
}

// Line returns s with everything escaped that does not print, line ends included. It is
// for a sentence that has words of others in it.
func Line(s string) string { return escape(s, func(r rune) bool { return !Visible(r) }) }

// Lines is Line for a text of several lines: its line ends stay.
func Lines(s string) string {
	return escape(s, func(r rune) bool { return !Visible(r) && r != '\n' })
}

// Drawn is Line for a picture, such as a line of a terminal's screen: blank letters stay.
func Drawn(s string) string {
	return escape(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// blank are characters that Unicode counts as letters, marks or symbols, and that have no picture
// of their own: two texts that look the same may differ in them.
var blank = unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // the Braille pattern without dots
	{Lo: 0x2d7f, Hi: 0x2d7f, Stride: 1}, // the joiner of Tifinagh
}, R32: []unicode.Range32{
	{Lo: 0x1107f, Hi: 0x1107f, Stride: 1}, // the joiner of Brahmi numbers
	{Lo: 0x13440, Hi: 0x13440, Stride: 1}, // marks of hieroglyphs that only change others
	{Lo: 0x13447, Hi: 0x13455, Stride: 1},
	{Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, // the filler of Khitan
	{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // the musical note without a head
}}

// Visible reports whether a character shows itself: it prints ([unicode.IsPrint]) and is not blank.
// The only blank one that counts is the space of ASCII.
func Visible(r rune) bool {
	return unicode.IsPrint(r) && (r < 0x80 || !unicode.In(r, &blank,
		unicode.Other_Default_Ignorable_Code_Point, // fillers of Hangul, Khmer vowels, the grapheme joiner
		unicode.Variation_Selector))                // which say how the character before them looks
}

// escape escapes characters, and bytes that are none.
func escape(s string, hidden func(rune) bool) string {
	var b strings.Builder
	done := 0 // how much of s is in b
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if invalid := r == utf8.RuneError && n == 1; invalid || hidden(r) {
			b.WriteString(s[done:i])
			b.WriteString(escaped(s[i:i+n], r))
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return s
	}
	return b.String() + s[done:]
}

// escaped returns a character, or a byte that is none, as in Go source.
func escaped(s string, r rune) string {
	switch quoted := strconv.Quote(s); {
	case !unicode.IsPrint(r) || r == utf8.RuneError && len(s) == 1:
		return quoted[1 : len(quoted)-1]
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
