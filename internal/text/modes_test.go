// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"testing"
)

// TestModes follows what programs set, in whole and byte by byte, and brings it back.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		name, output string
		away, back   string
		second       bool
	}{
		{"nothing", "plain text \x1b[31mred\x1b[2J", "\x1b[m", "", false},
		{"a second screen", "\x1b[?1049h", "\x1b[?1049l\x1b[m", "\x1b[?1049h", true},
		{"left again", "\x1b[?1049hx\x1b[?1049l", "\x1b[m", "", false},
		{"a hidden cursor", "\x1b[?25l", "\x1b[?25h\x1b[m", "\x1b[?25l", false},
		{"shown again", "\x1b[?25l\x1b[?25h", "\x1b[m", "", false},
		{"an editor", "\x1b[?1049;2004h\x1b[?1000h\x1b[?25l", "\x1b[?2004l\x1b[?1049l\x1b[?1000l\x1b[?25h\x1b[m", "\x1b[?25l\x1b[?1000h\x1b[?1049h\x1b[?2004h", true},
		{"cut off by another one", "\x1b[?10\x1b[?2004h", "\x1b[?2004l\x1b[m", "\x1b[?2004h", false},
		{"not private", "\x1b[4h\x1b[1049h", "\x1b[m", "", false},
		{"no numbers", "\x1b[?20\n04h\x1b[?;h\x1b[?123456h\x1b[?\x9b1h", "\x1b[m", "", false},
		{"two escapes", "\x1b\x1b[?7l\x1b[?2004h", "\x1b[?2004l\x1b[?7h\x1b[m", "\x1b[?7l\x1b[?2004h", false},
		{"as usual", "\x1b[?7h\x1b[?8h\x1b[?1048h", "\x1b[m", "", false},
		{"a keypad", "\x1b=", "\x1b>\x1b[m", "\x1b=", false},
		{"a keypad as usual", "\x1b=\x1b[?1h\x1b[?1l\x1b>", "\x1b[m", "", false},
		{"keys of kitty", "\x1b[>1u", "\x1b[=0u\x1b[>4m\x1b[m", "", false},
		{"reset", "\x1b[?1049h\x1b=\x1bc", "\x1b[m", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var whole, pieces ScreenModes
			whole.Follow([]byte(c.output))
			for i := range len(c.output) {
				pieces.Follow([]byte(c.output[i : i+1]))
			}
			for _, m := range []*ScreenModes{&whole, &pieces} {
				if away, back, second := m.Away(); away != c.away || back != c.back || second != c.second {
					t.Errorf("%q, %q, %v; want %q, %q, %v", away, back, second, c.away, c.back, c.second)
				}
			}
		})
	}
}

// TestScreenModes: a screen knows the modes of its program, however long ago they were set.
func TestScreenModes(t *testing.T) {
	for output, want := range map[string]string{
		"": "", "\x1b[?1049h\x1b[?1h\x1b=": "\x1b[?1h\x1b[?1049h\x1b=", "\x1b[?2004h\x1b[?1000;1006h\x1b[?1000l": "\x1b[?1006h\x1b[?2004h",
		"\x1b[?25l\x1b[?1049h\x1bc": "", "\x1b[?25l\x1b[?25h": "",
	} {
		s := NewScreen(80, 24)
		for i := range len(output) {
			_, _ = s.Write([]byte(output[i : i+1]))
		}
		_, _ = s.Write(bytes.Repeat([]byte("text\r\n"), 1000))
		if got := s.Modes(); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

// TestMoved: the cursor counts as moved up where a sequence may do that on the main screen.
func TestMoved(t *testing.T) {
	for output, want := range map[string]bool{
		"": false, "text\r\n\x1b[31mred": false, "\x1b[H": true, "\x1b[2A": true, "\x1bM": true, "\x1b7x\x1b8": true,
		"\x1b[u": true, "\x1b[?1049h\x1b[H\x1b[3;1H\x1b[?1049l": false, "\x1b[?1049hx\x1b[?1049l\x1b[A": true,
		"\x1b[2B\x1b[K\x1b[2J\x1b[C": false, "\x1b[1;5r": true, "\x1b[H\x1bc": false,
	} {
		var m ScreenModes
		if m.Follow([]byte(output)); m.Moved() != want {
			t.Errorf("%q: %v", output, !want)
		}
	}
}

// TestLeft: attributes are left on as well, and what was reset is not.
func TestLeft(t *testing.T) {
	for output, want := range map[string]bool{
		"": false, "text\x1b[2J": false, "\x1b[31m": true, "\x1b[31mred\x1b[0m": false, "\x1b[1m\x1b[m": false,
		"\x1b[0;31m": true, "\x1b[?25l": true, "\x1b[?25h\x1b[?7h": false, "\x1b[?2004h\x1b[?2004l": false,
		"\x1b[38;5;0m": true, "\x1b[1;48;2;0;0;0m": true, "\x1b[38;5;1m\x1b[0m": false, "\x1b[32;0m": false,
		"\x1b=": true, "\x1b[>4;2m": true,
	} {
		var m ScreenModes
		if m.Follow([]byte(output)); m.Left() != want {
			t.Errorf("%q: %v", output, !want)
		}
	}
}

// FuzzModes: no output makes the modes grow without bound, or loses its place.
func FuzzModes(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[?25l"))
	f.Add([]byte("\x1b[?\x1b["))
	f.Fuzz(func(t *testing.T, output []byte) {
		var m ScreenModes
		m.Follow(output)
		m.Follow(output)
		if len(m.rest) > longestCSI || len(m.set) > 64 {
			t.Errorf("%d bytes are kept, %d modes", len(m.rest), len(m.set))
		}
		n := len(m.set)
		m.Follow([]byte("x\x1b[?25l"))
		if m.set["25"] && n < 64 {
			t.Error("what followed was not seen")
		}
	})
}
