// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"slices"
	"testing"
	"unicode"
	"unicode/utf8"
)

// checkScreen asks for what must hold whatever was written.
func checkScreen(t *testing.T, s *Screen) {
	t.Helper()
	snap := s.Snapshot()
	if snap.Cursor.Col < 0 || snap.Cursor.Col >= snap.Cols || snap.Cursor.Row < 0 ||
		snap.Cursor.Row >= snap.Rows {
		t.Fatalf("the cursor is at %+v of %dx%d", snap.Cursor, snap.Cols, snap.Rows)
	}
	if s.cursor.x > s.cols {
		t.Fatalf("the cursor is in column %d of %d", s.cursor.x, s.cols)
	}
	if len(snap.Lines) != snap.Rows || len(snap.Title) > maxTitle || !utf8.ValidString(snap.Title) {
		t.Fatalf("%d lines of %d, title %q", len(snap.Lines), snap.Rows, snap.Title)
	}
	for y, line := range snap.Lines {
		n := 0
		for _, r := range line {
			n += cells(r)
			if unicode.IsControl(r) || invisible(r) {
				t.Fatalf("row %d has %U in it", y, r)
			}
		}
		if n > snap.Cols || !utf8.ValidString(line) || len(line) > snap.Cols*maxMarked {
			t.Fatalf("row %d of %d columns has %d cells: %q", y, snap.Cols, n, line)
		}
	}
	if len(s.replies) > maxReplies || len(s.marks.texts) > maxMarkedKinds || len(s.titles) > maxTitles ||
		cap(s.parser.osc) > 2*maxOSC {
		t.Fatalf("%d bytes of answers, %d kinds of marks, %d titles, %d bytes of a string",
			len(s.replies), len(s.marks.texts), len(s.titles), cap(s.parser.osc))
	}
	for _, g := range []*grid{s.main, s.alt} {
		if g != nil {
			checkGrid(t, s, g)
		}
	}
}

// checkGrid asks for what must hold inside of one of the two screens.
func checkGrid(t *testing.T, s *Screen, g *grid) {
	t.Helper()
	if g.cols != s.cols || g.rows != s.rows || g.top < 0 || g.top > g.bottom || g.bottom >= g.rows {
		t.Fatalf("grid of %dx%d on %dx%d, margins %d..%d", g.cols, g.rows, s.cols, s.rows, g.top, g.bottom)
	}
	order := slices.Sorted(slices.Values(g.order))
	for y := range g.rows {
		if int(order[y]) != y {
			t.Fatalf("row %d is shown twice or never: %v", y, g.order)
		}
		row := g.look(y)
		for x, c := range row {
			if c&wide != 0 && (x+1 == g.cols || row[x+1] != tail) || c&tail != 0 &&
				(x == 0 || c != tail || row[x-1]&wide == 0) {
				t.Fatalf("row %d column %d: half of a wide character", y, x)
			}
			if c.code() >= firstMarked && int(c.code()-firstMarked) >= len(s.marks.texts) {
				t.Fatalf("row %d column %d: marks that are not in the table", y, x)
			}
			if c != 0 && !g.touched[g.order[y]] {
				t.Fatalf("row %d is marked untouched and contains something", y)
			}
		}
	}
}

// FuzzScreen writes anything to screens of any size, changes the size meanwhile, and writes
// the same byte by byte. Nothing may panic, checkScreen must hold, and both must look alike.
func FuzzScreen(f *testing.F) {
	for _, seed := range []string{
		"hello\r\nworld", "\x1b[2J\x1b[3;4H日本\x1b[2Gx", "\x1b[?1049h\x1b[2;3r\x1b[?6h\n\n\n\x1bM\x1bM",
		"e\u0301\u0302\x1b[9b",
		"\x1b]2;title\x07\x1b[22t\x1b[23t", "\x1bP\x1b\\\x1b_x\x1b\\", "\x1b[4h中\x1b[?7l中中\x1b[@\x1b[P\x1b[X",
		"\xe6\x97\xff\x1b[6n\x1b[?6$p",
		"\x1b(0lqqk\x0e\x1b)0\x1b#8\x1b[L\x1b[M\x1b[S\x1b[T", "\t\x1bH\x1b[I\x1b[Z\x1b[3g\x1bc\x1b[!p",
		"\u009b2;2H\u0084\u0085\u0090x\u009c",
	} {
		f.Add([]byte(seed), uint16(10), uint16(4), uint16(7), uint16(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, cols, rows, nextCols, nextRows uint16) {
		// Larger screens only make the search slower.
		c, r, nc, nr := int(cols%90), int(rows%30), int(nextCols%90), int(nextRows%30)
		whole, pieces := NewScreen(c, r), NewScreen(c, r)
		at := len(in) / 2
		for _, part := range [][]byte{in[:at], in[at:]} {
			if n, err := whole.Write(part); n != len(part) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			checkScreen(t, whole)
			for i := range part {
				if n, err := pieces.Write(part[i : i+1]); n != 1 || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			a, b := whole.Snapshot(), pieces.Snapshot()
			if !slices.Equal(a.Lines, b.Lines) || a.Cursor != b.Cursor || a.Title != b.Title ||
				a.Alternate != b.Alternate {
				t.Fatalf("whole %q %+v\npieces %q %+v", a.Lines, a.Cursor, b.Lines, b.Cursor)
			}
			whole.Resize(nc, nr)
			pieces.Resize(nc, nr)
			checkScreen(t, whole)
		}
		if string(whole.Replies()) != string(pieces.Replies()) {
			t.Fatal("pieces are answered differently")
		}
	})
}
