// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package front

import (
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
		{"two escapes", "\x1b\x1b[?7l\x1b[?2004h", "\x1b[?2004l\x1b[m", "\x1b[?2004h", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var whole, pieces modes
			whole.follow([]byte(c.output))
			for i := range len(c.output) {
				pieces.follow([]byte(c.output[i : i+1]))
			}
			for _, m := range []*modes{&whole, &pieces} {
				if away, back, second := m.away(); away != c.away || back != c.back || second != c.second {
					t.Errorf("%q, %q, %v; want %q, %q, %v", away, back, second, c.away, c.back, c.second)
				}
			}
		})
	}
}

// FuzzModes: no output makes the modes grow without bound, or loses its place.
func FuzzModes(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[?25l"))
	f.Add([]byte("\x1b[?\x1b["))
	f.Fuzz(func(t *testing.T, output []byte) {
		var m modes
		m.follow(output)
		m.follow(output)
		if len(m.rest) > longestCSI || len(m.set) > 64 {
			t.Errorf("%d bytes are kept, %d modes", len(m.rest), len(m.set))
		}
		n := len(m.set)
		m.follow([]byte("x\x1b[?25l"))
		if m.set["25"] && n < 64 {
			t.Error("what followed was not seen")
		}
	})
}
