// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"unicode"

	"golang.org/x/text/width"
)

// cells returns how many cells a printable character takes: 0 for one that joins the
// character before it, 1, or 2. Widths are those of Unicode's Annex 11, and the rest is as in
// wcwidth of Markus Kuhn and its successors, which programs count with.
func cells(r rune) int {
	switch {
	case r < 0x300: // the soft hyphen too
		return 1
	case joins(r):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// joins reports whether the character is shown on top of the one before it: marks, joiners,
// variation selectors, and the vowels and final consonants of Hangul written in parts.
func joins(r rune) bool {
	return r >= 0x1160 && r <= 0x11ff || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf)
}

// invisible reports whether the character shows nothing and only changes how others are laid
// out or read. A snapshot contains none of them: marks of direction make text read
// differently from what it is, and line separators make one line two.
func invisible(r rune) bool {
	return r == 0x61c || r == 0x180e || r == 0x200b || r == 0x200e || r == 0x200f ||
		r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f ||
		r == 0xfeff || r >= 0xfff9 && r <= 0xfffb || r == 0xe0001
}
