// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/text"
)

func TestAlternate(t *testing.T) {
	tests := []struct {
		name      string
		in        string
		want      string
		alternate bool
		col, row  int
	}{
		{"47 shows a blank screen", "ab\x1b[?47hX", "  X", true, 3, 0},
		{"47 and back", "ab\x1b[?47hX\nY\x1b[?47lZ", "ab\n    Z", false, 5, 1},
		{"1047 and back", "ab\x1b[?1047hX\x1b[?1047lZ", "ab Z", false, 4, 0},
		{"1049 restores the cursor", "ab\x1b[?1049h\x1b[3;3HX\x1b[?1049lZ", "abZ", false, 3, 0},
		{"blank again the second time", "\x1b[?1049habc\x1b[?1049l\x1b[?1049hX", "X", true, 1, 0},
		{"twice on", "ab\x1b[?1049hX\x1b[?1049hY", "  XY", true, 4, 0},
		{"off without on", "ab\x1b[?1049lX", "Xb", false, 1, 0},
		{"margins of its own", page + "\x1b[2;3r\x1b[?1049h\x1b[4;1HX\nY", "\n\nX\n Y", true, 2, 3},
		{"margins are kept", page + "\x1b[2;3r\x1b[?1049h\x1b[?1049l\x1b[3;1H\n", "aaa\nccc\n\nddd", false, 0, 2},
		{"saved cursors of their own", "abc\x1b7\x1b[?47h\x1b[2;2H\x1b7\x1b[?47l\x1b8X", "abcX", false, 4, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := text.NewScreen(10, 4)
			write(t, s, []byte(test.in))
			got := s.Snapshot()
			if got.String() != test.want || got.Alternate != test.alternate || got.Cursor.Col != test.col ||
				got.Cursor.Row != test.row {
				t.Errorf("got %q %+v alternate %t, want %q %d,%d %t", got.String(), got.Cursor, got.Alternate,
					test.want, test.col, test.row, test.alternate)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"never said", "x", ""},
		{"OSC 2", "\x1b]2;hello\x07", "hello"},
		{"OSC 0", "\x1b]0;hello\x1b\\", "hello"},
		{"8-bit", "\u009d2;hello\u009c", "hello"},
		{"icon only", "\x1b]1;hello\x07", ""},
		{"another number", "\x1b]20;hello\x07\x1b]02;two\x07", "two"},
		{"no number", "\x1b];hello\x07", ""},
		{"no text", "\x1b]2;a\x07\x1b]2\x07", "a"},
		{"emptied", "\x1b]2;a\x07\x1b]2;\x07", ""},
		{"semicolons", "\x1b]2;a;b\x07", "a;b"},
		{"Unicode", "\x1b]2;日本 é\x07", "日本 é"},
		{"controls", "\x1b]2;a\x01\nb\u202ec\x7fd\u2028e\x07", "abcde"},
		{"wrong UTF-8", "\x1b]2;a\xffb\x07", "a\ufffdb"},
		{"aborted", "\x1b]2;a\x18", ""},
		{"unfinished", "\x1b]2;a", ""},
		{"ended by a sequence", "\x1b]2;a\x1b[H", "a"},
		{"too long", "\x1b]2;" + strings.Repeat("é", 5000) + "\x07", strings.Repeat("é", 512)},
		{"longest", "\x1b]2;" + strings.Repeat("a", 1024) + "\x07", strings.Repeat("a", 1024)},
		{"pushed and popped", "\x1b]2;a\x07\x1b[22;0t\x1b]2;b\x07\x1b[23;2t", "a"},
		{"icon pushed", "\x1b]2;a\x07\x1b[22;1t\x1b]2;b\x07\x1b[23;2t", "b"},
		{"popped without a push", "\x1b]2;a\x07\x1b[23t", "a"},
		{"many pushed", "\x1b]2;a\x07" + strings.Repeat("\x1b[22t", 1000) + "\x1b]2;b\x07" + strings.Repeat("\x1b[23t", 1000), "a"},
		{"kept by a reset", "\x1b]2;a\x07\x1bc", "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := text.NewScreen(10, 4)
			write(t, s, []byte(test.in))
			if got := s.Snapshot().Title; got != test.want {
				t.Errorf("title %q, want %q", got, test.want)
			}
		})
	}
}

func TestReplies(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing asked", "hello\x1b[H", ""},
		{"primary attributes", "\x1b[c\x1b[0c", "\x1b[?1;2c\x1b[?1;2c"},
		{"attributes of something else", "\x1b[1c\x1b[>1c\x1b[=c", ""},
		{"secondary attributes", "\x1b[>c", "\x1b[>0;10;0c"},
		{"status", "\x1b[5n", "\x1b[0n"},
		{"position", "\x1b[2;3H\x1b[6n", "\x1b[2;3R"},
		{"private position", "\x1b[2;3H\x1b[?6n\x1b[?5n", "\x1b[?2;3R"},
		{"position while waiting to wrap", "0123456789\x1b[6n", "\x1b[1;10R"},
		{"position in origin mode", "\x1b[2;3r\x1b[?6h\x1b[2;1H\x1b[6n", "\x1b[2;1R"},
		{"modes that are off", "\x1b[4$p\x1b[20$p\x1b[?6$p\x1b[?1049$p", "\x1b[4;2$y\x1b[20;2$y\x1b[?6;2$y\x1b[?1049;2$y"},
		{"modes that are on", "\x1b[4h\x1b[4$p\x1b[?7$p\x1b[?25$p\x1b[?47h\x1b[?47$p", "\x1b[4;1$y\x1b[?7;1$y\x1b[?25;1$y\x1b[?47;1$y"},
		{"unknown modes", "\x1b[?2026$p\x1b[7$p\x1b[?31337$p", ""},
		{"titles, answerback, status strings, names", "\x1b]2;rm -rf\x07\x1b[21t\x1b[20t\x05\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1b[>q\x1b]10;?\x07\x1b]52;c;?\x07\x1bZ", ""},
		{"8-bit", "\u009b5n", "\x1b[0n"},
		{"far too many", strings.Repeat("\x1b[5n", 10000), strings.Repeat("\x1b[0n", 256)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := text.NewScreen(10, 4)
			write(t, s, []byte(test.in))
			if got := string(s.Replies()); got != test.want {
				t.Errorf("replies %q, want %q", got, test.want)
			}
			if again := s.Replies(); again != nil {
				t.Errorf("asked again: %q, want nil", again)
			}
		})
	}
}

func TestVisible(t *testing.T) {
	tests := []struct {
		name, in string
		want     bool
	}{
		{"at first", "", true},
		{"hidden", "\x1b[?25l", false},
		{"shown again", "\x1b[?25l\x1b[?25h", true},
		{"among others", "\x1b[?1;25;2004l", false},
		{"soft reset", "\x1b[?25l\x1b[!p", true},
		{"hard reset", "\x1b[?25l\x1bc", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := text.NewScreen(10, 4)
			write(t, s, []byte(test.in))
			if got := s.Snapshot().Cursor.Visible; got != test.want {
				t.Errorf("visible %t, want %t", got, test.want)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	tests := []struct {
		name                           string
		cols, rows, wantCols, wantRows int
	}{
		{"zero", 0, 0, 80, 24},
		{"negative", -5, -1, 80, 24},
		{"zero columns", 0, 5, 80, 5},
		{"smallest", 1, 1, 1, 1},
		{"largest", 1000, 1000, 1000, 1000},
		{"too large", 1001, 99999, 1000, 1000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			resized := text.NewScreen(7, 7)
			resized.Resize(test.cols, test.rows)
			for _, s := range []*text.Screen{text.NewScreen(test.cols, test.rows), resized} {
				got := s.Snapshot()
				if got.Cols != test.wantCols || got.Rows != test.wantRows || len(got.Lines) != test.wantRows {
					t.Errorf("%dx%d with %d lines, want %dx%d", got.Cols, got.Rows, len(got.Lines),
						test.wantCols, test.wantRows)
				}
			}
		})
	}
}

func TestSmallest(t *testing.T) {
	s := text.NewScreen(1, 1)
	write(t, s, []byte("ab\t日\x1b[4hc\x1b[9@d\x1b[9Pe\u0301\n\x1b[2;2r\x1b[?6hfg"))
	want := text.Snapshot{Lines: []string{"g"}, Cols: 1, Rows: 1, Cursor: text.Cursor{Visible: true}}
	if diff := cmp.Diff(want, s.Snapshot()); diff != "" {
		t.Error(diff)
	}
}

func TestResize(t *testing.T) {
	tests := []struct {
		name       string
		before     string
		cols, rows int
		after      string
		want       string
		col, row   int
	}{
		{"same", page, 10, 4, "", "aaa\nbbb\nccc\nddd", 0, 0},
		{"larger", page, 12, 6, "", "aaa\nbbb\nccc\nddd", 0, 0},
		{"narrower cuts", "0123456789", 5, 4, "", "01234", 4, 0},
		{"narrower cuts a wide one", "日本", 3, 4, "", "日", 2, 0},
		{"lower drops below the cursor first", page + "\x1b[2;1H", 10, 2, "", "aaa\nbbb", 0, 1},
		{"lower drops at the top then", page + "\x1b[4;2H", 10, 2, "", "ccc\nddd", 1, 1},
		{"margins are reset", page + "\x1b[2;3r\x1b[3;1H", 10, 5, "\nX", "aaa\nbbb\nccc\nXdd", 1, 3},
		{"wait for the wrap ends", "0123456789", 12, 4, "X", "0123456789X", 11, 0},
		{"wait for the wrap ends in the last column", "0123456789", 10, 5, "X", "012345678X", 9, 0},
		{"main screen behind the alternate", page + "\x1b[4;2H\x1b[?1049h", 10, 2, "\x1b[?1049lX", "ccc\ndXd", 2, 1},
		{"alternate screen", "\x1b[?1049h" + page + "\x1b[4;2H", 10, 2, "X", "ccc\ndXd", 2, 1},
		{"hidden alternate screen", page + "\x1b[?47h\x1b[?47l", 6, 2, "\x1b[?47hX", "X", 1, 0},
		{"saved cursor comes along", page + "\x1b[4;9H\x1b7", 5, 2, "\x1b[H\x1b8X", "ccc\nddd X", 4, 1},
		{"saved cursor moves up with its row", page + "\x1b[3;9H\x1b7\x1b[4;1H", 5, 2, "\x1b8X", "ccc X\nddd", 4, 0},
		{"tab stops of new columns", "\x1b[H", 20, 4, "\t\tX", "                X", 17, 0},
		{"marks survive", "e\u0301日", 5, 2, "", "e\u0301日", 3, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := text.NewScreen(10, 4)
			write(t, s, []byte(test.before))
			s.Resize(test.cols, test.rows)
			write(t, s, []byte(test.after))
			got := s.Snapshot()
			if got.String() != test.want || got.Cursor.Col != test.col || got.Cursor.Row != test.row {
				t.Errorf("got %q %+v, want %q %d,%d", got.String(), got.Cursor, test.want, test.col, test.row)
			}
		})
	}
}

// TestBounds writes input that would fill memory without bounds.
func TestBounds(t *testing.T) {
	t.Run("marks on one character", func(t *testing.T) {
		s := text.NewScreen(10, 4)
		write(t, s, []byte("e"+strings.Repeat("\u0301", 100000)))
		if n := len(s.Snapshot().Lines[0]); n < 40 || n > 64 {
			t.Errorf("%d bytes in one cell, want about 64", n)
		}
	})
	t.Run("different marks", func(t *testing.T) {
		s := text.NewScreen(10, 4)
		var in strings.Builder
		for a := range rune(60) {
			for b := range rune(60) {
				for c := range rune(12) {
					in.WriteString("\x1b[Hx")
					in.WriteRune(0x300 + a)
					in.WriteRune(0x300 + b)
					in.WriteRune(0x300 + c)
				}
			}
		}
		write(t, s, []byte(in.String()))
		want := "x" + string([]rune{0x300 + 59, 0x300 + 59, 0x300 + 11})
		if got := s.Snapshot().String(); got != want {
			t.Errorf("the last of many is %+q, want %+q", got, want)
		}
	})
	t.Run("string without an end", func(t *testing.T) {
		for _, begin := range []string{"\x1b]0;", "\x1bP", "\x1b_"} {
			s := text.NewScreen(10, 4)
			write(t, s, []byte(begin))
			piece := []byte(strings.Repeat("x", 1<<20))
			for range 9 {
				write(t, s, piece)
			}
			if got := s.Snapshot().String(); got != "" {
				t.Errorf("%q: %q is shown, want nothing", begin, got)
			}
			write(t, s, piece)
			if got := s.Snapshot().String(); got == "" {
				t.Errorf("%q: still swallowed after 10 MiB", begin)
			}
		}
	})
}

// TestSnapshotIsACopy draws on after a look.
func TestSnapshotIsACopy(t *testing.T) {
	s := text.NewScreen(10, 4)
	write(t, s, []byte("hello\x1b]2;one\x07"))
	before, same := s.Snapshot(), s.Snapshot()
	write(t, s, []byte("\x1b[2J\x1b[HX\x1b]2;two\x07\x1b[?25l"))
	if diff := cmp.Diff(same, before); diff != "" {
		t.Errorf("a snapshot changed:\n%s", diff)
	}
}

// TestIdleSize holds an idle screen to 32 KiB.
func TestIdleSize(t *testing.T) {
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s := text.NewScreen(80, 24)
			if n, err := s.Write([]byte("$ \x1b[?1049h")); n != 10 || err != nil {
				b.Fatal(n, err)
			}
		}
	})
	if got := result.AllocedBytesPerOp(); got == 0 || got > 32<<10 {
		t.Errorf("a screen of 80x24 takes %d bytes, want 32768 at most", got)
	}
}
