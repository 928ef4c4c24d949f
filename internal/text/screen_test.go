// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// An effect is what a program wrote and what is to be seen. Screens have 10x4 cells.
type effect struct {
	name     string
	in       string
	want     string // String of the snapshot
	col, row int
}

// check runs the effects.
func check(t *testing.T, effects []effect) {
	t.Helper()
	for _, e := range effects {
		t.Run(e.name, func(t *testing.T) {
			s := text.NewScreen(10, 4)
			write(t, s, []byte(e.in))
			got := s.Snapshot()
			if got.String() != e.want || got.Cursor.Col != e.col || got.Cursor.Row != e.row {
				t.Errorf("%q\n got %q cursor %d,%d\nwant %q cursor %d,%d",
					e.in, got.String(), got.Cursor.Col, got.Cursor.Row, e.want, e.col, e.row)
			}
		})
	}
}

// page fills a screen of 10x4 and leaves the cursor at its beginning.
const page = "\x1b[2Jaaa\r\nbbb\r\nccc\r\nddd\x1b[H"

func TestControls(t *testing.T) {
	check(t, []effect{
		{"nothing", "", "", 0, 0},
		{"text", "hello", "hello", 5, 0},
		{"trailing blanks", "hi   ", "hi", 5, 0},
		{"blanks inside", "a  b", "a  b", 4, 0},
		{"carriage return", "hello\rJ", "Jello", 1, 0},
		{"line feed", "ab\ncd", "ab\n  cd", 4, 1},
		{"vertical tab and form feed", "a\vb\fc", "a\n b\n  c", 3, 2},
		{"line feed at the bottom scrolls", "1\r\n2\r\n3\r\n4\r\n5", "2\n3\n4\n5", 1, 3},
		{"backspace", "abc\b\bX", "aXc", 2, 0},
		{"backspace at the left edge", "\b\bX", "X", 1, 0},
		{"tab", "a\tb", "a       b", 9, 0},
		{"tab at the end", "\t\t\tX", "         X", 9, 0},
		{"bell, null, delete and enquiry", "a\a\x00\x7f\x05b", "ab", 2, 0},
		{"tab stop set and cleared", "\x1b[4G\x1bH\r\tX\r\x1b[4G\x1b[g\r\tY", "   X    Y", 9, 0},
		{"all tab stops cleared", "\x1b[3g\tX", "         X", 9, 0},
		{"forward and back by tabs", "\x1b[5G\x1bH\r\x1b[2IX\x1b[2ZY", "    Y   X", 5, 0},
		{"index", "a\x1bDb", "a\n b", 2, 1},
		{"next line", "a\x1bEb", "a\nb", 1, 1},
		{"reverse index", "a\nb\x1bMc", "a c\n b", 3, 0},
		{"reverse index at the top scrolls", page + "\x1bM", "\naaa\nbbb\nccc", 0, 0},
		{"8-bit index, next line, reverse index", "a\u0084b\u0085c\u008d", "a\n b\nc", 1, 1},
		{"8-bit tab stop", "\x1b[4G\u0088\r\tX", "   X", 4, 0},
		{"8-bit control sequence", "\u009b2;3HX", "\n  X", 3, 1},
		{"newline mode", "\x1b[20hab\ncd\x1b[20l\ne", "ab\ncd\n  e", 3, 2},
	})
}

func TestWrap(t *testing.T) {
	check(t, []effect{
		{"full line waits", "0123456789", "0123456789", 9, 0},
		{"next character wraps", "0123456789a", "0123456789\na", 1, 1},
		{"carriage return ends the wait", "0123456789\rX", "X123456789", 1, 0},
		{"line feed ends the wait", "0123456789\nX", "0123456789\n         X", 9, 1},
		{"backspace ends the wait", "0123456789\bX", "01234567X9", 9, 0},
		{"movement ends the wait", "0123456789\x1b[DX", "01234567X9", 9, 0},
		{"erasing to the right leaves the last column", "0123456789\x1b[K", "0123456789", 9, 0},
		{"wraps at the bottom", "\x1b[4;10HXY", "\n\n         X\nY", 1, 3},
		{"off", "\x1b[?7l0123456789abc", "012345678c", 9, 0},
		{"on again", "\x1b[?7l\x1b[?7h0123456789a", "0123456789\na", 1, 1},
		{"wide character does not fit", "012345678中", "012345678\n中", 2, 1},
		{"wide character with wrap off", "\x1b[?7l012345678中", "012345678", 9, 0},
	})
}

func TestMovement(t *testing.T) {
	check(t, []effect{
		{"home", "abc\x1b[HX", "Xbc", 1, 0},
		{"place", "\x1b[2;3HX", "\n  X", 3, 1},
		{"place by HVP", "\x1b[2;3fX", "\n  X", 3, 1},
		{"place with zeros", "abc\x1b[0;0HX", "Xbc", 1, 0},
		{"place beyond", "\x1b[99;99HX", "\n\n\n         X", 9, 3},
		{"up", "\x1b[3;3H\x1b[A\x1b[1AX", "  X", 3, 0},
		{"up too far", "\x1b[3;3H\x1b[99AX", "  X", 3, 0},
		{"down", "\x1b[B\x1b[2BX", "\n\n\nX", 1, 3},
		{"right", "\x1b[C\x1b[2CX", "   X", 4, 0},
		{"left", "abcd\x1b[D\x1b[2DX", "aXcd", 2, 0},
		{"next and previous lines", "ab\x1b[EX\x1b[FY", "Yb\nX", 1, 0},
		{"column", "abc\x1b[2GX", "aXc", 2, 0},
		{"column by HPA", "abc\x1b[2`X", "aXc", 2, 0},
		{"row", "ab\x1b[3dX", "ab\n\n  X", 3, 2},
		{"relative column and row", "\x1b[2a\x1b[1eX", "\n  X", 3, 1},
		{"largest parameter", "\x1b[99999999999999999999CX", "         X", 9, 0},
		{"control inside of a sequence", "\x1b[2\n;3HX", "\n  X", 3, 1},
		{"saved by ESC 7", "ab\x1b7\x1b[3;3H\x1b8X", "abX", 3, 0},
		{"saved by CSI s", "ab\x1b[s\x1b[3;3H\x1b[uX", "abX", 3, 0},
		{"saved by mode 1048", "ab\x1b[?1048h\x1b[3;3H\x1b[?1048lX", "abX", 3, 0},
		{"restored without a save", "ab\x1b8X", "Xb", 1, 0},
	})
}

func TestErase(t *testing.T) {
	check(t, []effect{
		{"display below", page + "\x1b[2;2H\x1b[J", "aaa\nb", 1, 1},
		{"display above", page + "\x1b[2;2H\x1b[1J", "\n  b\nccc\nddd", 1, 1},
		{"display", page + "\x1b[2;2H\x1b[2J", "", 1, 1},
		{"scrollback", page + "\x1b[3J", "aaa\nbbb\nccc\nddd", 0, 0},
		{"display selectively", page + "\x1b[?2J", "", 0, 0},
		{"unknown part of the display", page + "\x1b[7J", "aaa\nbbb\nccc\nddd", 0, 0},
		{"line to the right", "abc\x1b[2G\x1b[K", "a", 1, 0},
		{"line to the left", "abc\x1b[2G\x1b[1K", "  c", 1, 0},
		{"line", "abc\x1b[2G\x1b[2K", "", 1, 0},
		{"line selectively", "abc\x1b[2G\x1b[?K", "a", 1, 0},
		{"characters", "abcdef\x1b[2G\x1b[3X", "a   ef", 1, 0},
		{"characters beyond the line", "abc\x1b[2G\x1b[99X", "a", 1, 0},
		{"insert characters", "abcdef\x1b[2G\x1b[2@", "a  bcdef", 1, 0},
		{"insert pushes out", "0123456789\x1b[1G\x1b[3@X", "X  0123456", 1, 0},
		{"delete characters", "abcdef\x1b[2G\x1b[2P", "adef", 1, 0},
		{"delete more than there is", "abc\x1b[2G\x1b[99P", "a", 1, 0},
		{"insert lines", page + "\x1b[2;2H\x1b[2L", "aaa\n\n\nbbb", 0, 1},
		{"delete lines", page + "\x1b[2;2H\x1b[2M", "aaa\nddd", 0, 1},
		{"delete all lines", page + "\x1b[99M", "", 0, 0},
		{"scroll up", page + "\x1b[2S", "ccc\nddd", 0, 0},
		{"scroll down", page + "\x1b[T", "\naaa\nbbb\nccc", 0, 0},
		{"mouse highlighting", page + "\x1b[1;1;1;1;1T", "aaa\nbbb\nccc\nddd", 0, 0},
		{"insert mode", "abc\r\x1b[4hX\x1b[4lY", "XYbc", 2, 0},
		{"repeat", "ab\x1b[3b", "abbbb", 5, 0},
		{"repeat over the edge", "\x1b[9Gx\x1b[3b", "        xx\nxx", 2, 1},
		{"repeat after a movement", "a\x1b[C\x1b[3b", "a", 2, 0},
		{"repeat only once", "a\x1b[b\x1b[b", "aa", 2, 0},
		{"repeat a marked character", "e\u0301\x1b[2b", "e\u0301e\u0301e\u0301", 3, 0},
		{"repeat nothing", "\x1b[5b", "", 0, 0},
		{"alignment", "x\x1b[2;3r\x1b#8", strings.TrimSuffix(strings.Repeat("EEEEEEEEEE\n", 4), "\n"), 0, 0},
	})
}

func TestMargins(t *testing.T) {
	check(t, []effect{
		{"line feed inside", page + "\x1b[2;3r\x1b[3;1H\nX", "aaa\nccc\nX\nddd", 1, 2},
		{"reverse index inside", page + "\x1b[2;3r\x1b[2;1H\x1bMX", "aaa\nX\nbbb\nddd", 1, 1},
		{"line feed below", page + "\x1b[2;3r\x1b[4;1H\nX", "aaa\nbbb\nccc\nXdd", 1, 3},
		{"scroll up", page + "\x1b[2;3r\x1b[S", "aaa\nccc\n\nddd", 0, 0},
		{"scroll down", page + "\x1b[2;3r\x1b[T", "aaa\n\nbbb\nddd", 0, 0},
		{"insert line inside", page + "\x1b[2;3r\x1b[2;1H\x1b[L", "aaa\n\nbbb\nddd", 0, 1},
		{"insert line outside", page + "\x1b[2;3r\x1b[L", "aaa\nbbb\nccc\nddd", 0, 0},
		{"up stops at the margin", page + "\x1b[2;3r\x1b[3;1H\x1b[9AX", "aaa\nXbb\nccc\nddd", 1, 1},
		{"down stops at the margin", page + "\x1b[2;3r\x1b[2;1H\x1b[9BX", "aaa\nbbb\nXcc\nddd", 1, 2},
		{"up from above the margin", page + "\x1b[3;4r\x1b[2;1H\x1b[9AX", "Xaa\nbbb\nccc\nddd", 1, 0},
		{"reset", page + "\x1b[2;3r\x1b[r\x1b[4;1H\n", "bbb\nccc\nddd", 0, 3},
		{"upside down", page + "\x1b[3;2r\x1b[4;1H\n", "bbb\nccc\nddd", 0, 3},
		{"too large", page + "\x1b[2;99r\x1b[4;1H\n", "aaa\nccc\nddd", 0, 3},
		{"origin mode", page + "\x1b[2;3r\x1b[?6hX\x1b[9;1HY", "aaa\nXbb\nYcc\nddd", 1, 2},
		{"origin mode and columns", page + "\x1b[2;3r\x1b[?6h\x1b[2d\x1b[3GX", "aaa\nbbb\nccX\nddd", 3, 2},
		{"origin mode off", page + "\x1b[2;3r\x1b[?6h\x1b[?6lX", "Xaa\nbbb\nccc\nddd", 1, 0},
		{"origin mode is saved", page + "\x1b[2;3r\x1b[?6h\x1b7\x1b[?6l\x1b8\x1b[1;1HX", "aaa\nXbb\nccc\nddd", 1, 1},
	})
}

func TestCharacters(t *testing.T) {
	check(t, []effect{
		{"line drawing", "\x1b(0lqk\x1b(Blqk", "┌─┐lqk", 6, 0},
		{"whole drawing set", "\x1b(0_`abcdefg\r\nhijklmnop\r\nqrstuvwxy\r\nz{|}~",
			" ◆▒␉␌␍␊°±\n␤␋┘┐┌└┼⎺⎻\n─⎼⎽├┤┴┬│≤\n≥π≠£·", 5, 3},
		{"shift out and in", "\x1b)0q\x0eq\x0fq", "q─q", 3, 0},
		{"locking shifts two and three", "\x1b*0\x1b+0\x1bnq\x1boq\x0fq", "──q", 3, 0},
		{"british", "\x1b(A#\x1b(B#", "£#", 2, 0},
		{"saved sets", "\x1b(0\x1b7\x1b(Bq\x1b8q", "─", 1, 0},
		{"set ended by UTF-8", "\x1b(0\x1b%Gq", "q", 1, 0},
		{"wide", "a日本b", "a日本b", 6, 0},
		{"left half overwritten", "日本\x1b[1Gx", "x 本", 1, 0},
		{"right half overwritten", "日本\x1b[2Gx", " x本", 2, 0},
		{"wide over two wide", "日本\x1b[2G中", " 中", 3, 0},
		{"right half erased", "日本\x1b[2G\x1b[X", "  本", 1, 0},
		{"left half deleted", "日本\x1b[1G\x1b[P", " 本", 0, 0},
		{"insert between halves", "日本\x1b[2G\x1b[@", "   本", 1, 0},
		{"pushed half out", "日本日本日\x1b[1G\x1b[@", " 日本日本", 0, 0},
		{"mark", "e\u0301x", "e\u0301x", 2, 0},
		{"mark on a wide one", "中\u0301x", "中\u0301x", 3, 0},
		{"mark in the last column", "012345678e\u0301x", "012345678e\u0301\nx", 1, 1},
		{"mark at the beginning", "\u0301x", "x", 1, 0},
		{"mark on a blank", "\x1b[3G\u0301", "  \u0301", 2, 0},
		{"mark overwritten", "e\u0301\rx", "x", 1, 0},
		{"marks move along", "e\u0301\x1b[1G\x1b[@", " e\u0301", 0, 0},
		{"joiners", "\U0001F468\u200d\U0001F469x", "\U0001F468\u200d\U0001F469x", 5, 0},
		{"variation selector", "\u2764\ufe0fx", "\u2764\ufe0fx", 2, 0},
		{"invisible controls", "a\u202eb\u200bc\ufeffd\u2028e\u2066f", "abcdef", 6, 0},
		{"soft hyphen", "a\u00adb", "a\u00adb", 3, 0},
		{"hangul in parts", "\u1112\u1161\u11abx", "\u1112\u1161\u11abx", 3, 0},
		{"wrong byte", "a\xffb", "a\ufffdb", 3, 0},
		{"wrong beginnings", "\xc0\x80\xed\xa0\x80", "\ufffd\ufffd\ufffd\ufffd\ufffd", 5, 0},
		{"cut short", "\xe6\x97x\xf0\x9f\x98\x1b[Cy", "\ufffdx\ufffd y", 5, 0},
		{"overlong", "\xe0\x80\x80\xf0\x80\x80\x80", strings.Repeat("\ufffd", 7), 7, 0},
		{"beyond Unicode", "\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd", 4, 0},
		{"shortest and longest of each length", "\u00a0\u07ff\u0800\uffff\U00010000\U0010ffff", "\u00a0\u07ff\u0800\uffff\U00010000\U0010ffff", 6, 0},
	})
}

func TestIgnored(t *testing.T) {
	check(t, []effect{
		{"colors", "\x1b[1;31ma\x1b[38;2;1;2;3mb\x1b[4:3;58:2::1:2:3mc\x1b[0md", "abcd", 4, 0},
		{"colon in a movement", "\x1b[2:7;3:9HX", "\n  X", 3, 1},
		{"bracketed paste, mouse, focus, cursor keys", "\x1b[?2004h\x1b[?1000;1002;1003;1006;1015h\x1b[?1004h\x1b[?1h\x1b=\x1b>X", "X", 1, 0},
		{"cursor shape and keyboards", "\x1b[2 q\x1b[>1u\x1b[<u\x1b[=1u\x1b[?u\x1b[>4;2mX", "X", 1, 0},
		{"clipboard, link, color, unknown", "\x1b]52;c;aGk=\a\x1b]8;;http://x\x1b\\a\x1b]8;;\x1b\\\x1b]11;?\a\x1b]\aX", "aX", 2, 0},
		{"device control", "a\x1bP1$r0m\x1b\\b\x1bP+q544e\x1b\\c\u0090q#0~\u009cd", "abcd", 4, 0},
		{"other strings", "a\x1b_G日本\x1b\\b\x1b^x\x1b\\c\x1bXy\nz\x1b\\d\u009ffoo\u009ce", "abcde", 5, 0},
		{"strings aborted", "\x1bPabc\x18d\x1b_abc\x1ae\x1b]0;x\x18f", "def", 3, 0},
		{"string ended by another sequence", "\x1bPabc\x1b[3GX", "  X", 3, 0},
		{"bell does not end device control", "\x1bPa\ab\x1b\\X", "X", 1, 0},
		{"sequence aborted", "\x1b[2\x18X\x1b[3\x1aY", "XY", 2, 0},
		{"sequence begun anew", "\x1b[2\x1b[3GX", "  X", 3, 0},
		{"private marker in the wrong place", "\x1b[2?3HX", "X", 1, 0},
		{"digits behind an intermediate", "\x1b[ 5HX", "X", 1, 0},
		{"many intermediates", "\x1b[!!!pX\x1b(((0q", "Xq", 2, 0},
		{"many parameters", "\x1b[" + strings.Repeat("2;", 500) + "3HX", "\n X", 2, 1},
		{"letters beyond ASCII in a sequence", "\x1b[2éHX", "HX", 2, 0},
		{"single shifts", "\x1bNa\x1bOb", "ab", 2, 0},
		{"window requests", "\x1b[8;5;5t\x1b[18t\x1b[21tX", "X", 1, 0},
	})
}

func TestReset(t *testing.T) {
	const spoil = "\x1b(0\x1b[2;3r\x1b[?6h\x1b[?7l\x1b[4h\x1b[?25l\x1b[3g"
	check(t, []effect{
		{"hard", "abc" + spoil + "\x1bc" + "q\tx", "q       x", 9, 0},
		{"hard leaves the alternate screen", "ab\x1b[?1049hcd\x1bc", "", 0, 0},
		{"hard forgets the saved cursor", "abc\x1b7\x1bc\x1b8", "", 0, 0},
		{"soft", "a" + spoil + "\x1b[!p\x1b[3;9Hqqq", "a\n\n        qq\nq", 1, 3},
		{"soft keeps the screen and the cursor", "abc\x1b[!p", "abc", 3, 0},
		{"soft forgets the saved cursor", "abc\x1b7\x1b[!p\x1b8", "abc", 0, 0},
	})
}
