// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// ScreenModes are the private modes of a terminal that a program has set, as DECSET does (xterm: CSI ? Pm h),
// by their numbers, and what else it has left on. The zero
// value is a terminal in its usual state.
type ScreenModes struct {
	set  map[string]bool
	rest []byte // the beginning of a sequence whose end has not come

	keypad bool // DECKPAM: the keypad sends codes of its own
	keys   bool // the protocols of kitty or xterm for keys with modifiers
	pen    bool // colors and other attributes
	moved  bool // the cursor of the main screen may have been moved up
}

// longestCSI is how long a sequence is that sets modes.
const longestCSI = 64

// usual are modes that are set from the beginning: wrapping, repeated keys, a cursor.
var usual = []string{"7", "8", "25"}

// screens are modes that show a second screen.
var screens = []string{"47", "1047", "1049"}

// extended begin colors of several numbers, of which the last one may be 0.
var extended = []string{"38;", "48;", "58;"}

// Follow notes what output sets.
func (m *ScreenModes) Follow(p []byte) {
	if len(m.rest) > 0 {
		p = append(m.rest, p...)
	}
	m.rest = nil
	for {
		i := bytes.Index(p, []byte("\x1b"))
		if i < 0 {
			return
		}
		p = p[i:]
		if len(p) > 1 && (p[1] == '=' || p[1] == '>') {
			m.keypad = p[1] == '='
			p = p[2:]
			continue
		}
		if len(p) > 1 && (p[1] == '7' || p[1] == '8') { // DECSC, DECRC
			m.moved = m.moved || p[1] == '8' && !m.Second()
			p = p[2:]
			continue
		}
		end := bytes.IndexFunc(p[1:], func(r rune) bool {
			return r == 0x1b || r >= '@' &&
				r <= '~' && r != '['
		})
		if end < 0 {
			if len(p) <= longestCSI {
				m.rest = bytes.Clone(p)
			}
			return
		}
		m.sequence(string(p[1:end+1]), p[end+1])
		p = p[end+1:]
	}
}

// sequence notes what a sequence sets; before is all between ESC and its final byte.
func (m *ScreenModes) sequence(before string, final byte) {
	switch private, isPrivate := strings.CutPrefix(before, "[?"); {
	case isPrivate && (final == 'h' || final == 'l'):
		for number := range strings.SplitSeq(private, ";") {
			m.note(number, final == 'h')
		}
	case final == 'm' && strings.HasPrefix(before, "[>4"), final == 'u' &&
		(strings.HasPrefix(before, "[>") || strings.HasPrefix(before, "[=")):
		m.keys = true
	case final == 'm' && strings.HasPrefix(before, "["):
		last := before[strings.LastIndexAny(before, "[;")+1:]
		m.pen = strings.Trim(last, "0") != "" ||
			slices.ContainsFunc(extended, func(c string) bool { return strings.Contains(before, c) })
	case final == 'c' && before == "": // RIS
		*m = ScreenModes{}
	case m.Second():
	case final == 'M' && before == "", // RI
		strings.HasPrefix(before, "[") && strings.ContainsRune("AFHdfru", rune(final)):
		m.moved = true
	}
}

// Second reports whether a second screen is shown, that of full-screen programs.
func (m *ScreenModes) Second() bool {
	return slices.ContainsFunc(screens, func(number string) bool { return m.set[number] })
}

// Moved reports whether the program may have moved the cursor of the main screen up, so that output may be
// below it.
func (m *ScreenModes) Moved() bool { return m.moved }

// Left reports whether the terminal is not in its usual state.
func (m *ScreenModes) Left() bool {
	for number, on := range m.set {
		if on != slices.Contains(usual, number) {
			return true
		}
	}
	return m.keypad || m.keys || m.pen
}

// note notes one mode, by its number; programs set few.
func (m *ScreenModes) note(number string, on bool) {
	const most, longest = 64, 5
	if number == "1048" || len(number) > longest || number == "" || strings.Trim(number, "0123456789") != "" {
		return
	}
	if m.set == nil {
		m.set = map[string]bool{}
	}
	if _, known := m.set[number]; known || len(m.set) < most {
		m.set[number] = on
	}
}

// Away returns what brings the terminal into its usual state, and back what restores that of the
// program; second says that the program's screen is another one, which it has to draw anew.
func (m *ScreenModes) Away() (away, back string, second bool) {
	var on []string
	for _, number := range slices.Sorted(maps.Keys(m.set)) {
		switch {
		case m.set[number] == slices.Contains(usual, number):
			continue // as it is usually
		case !m.set[number]:
			away, back = away+"\x1b[?"+number+"h", back+"\x1b[?"+number+"l"
			continue
		case slices.Contains(screens, number):
			second = true
		}
		on = append(on, number)
	}
	for _, number := range on {
		away, back = "\x1b[?"+number+"l"+away, back+"\x1b[?"+number+"h"
	}
	if m.keypad {
		away, back = away+"\x1b>", back+"\x1b="
	}
	if m.keys {
		away += "\x1b[=0u\x1b[>4m"
	}
	return away + "\x1b[m", back, second
}
