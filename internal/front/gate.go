// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package front

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A gate is between a program and the terminal: while a question is on the terminal, what the program
// writes waits, so that it can neither hide the question nor change what it says. Then the program's
// screen and modes are put away, and brought back.
type gate struct {
	turn  sync.Mutex // held while something is written, or a question is on the terminal
	modes modes
}

// gated is a stream of the program that goes through a gate.
type gated struct {
	io.Writer
	gate *gate
}

// Write writes to the terminal, when no question is there.
func (g gated) Write(p []byte) (int, error) {
	g.gate.turn.Lock()
	defer g.gate.turn.Unlock()
	g.gate.modes.follow(p)
	return g.Writer.Write(p)
}

// Gate returns a writer to the terminal for a program that may run while there is a question. Nothing
// else of the program may write to the terminal.
func (c *Console) Gate(w io.Writer) io.Writer { return gated{w, &c.gate} }

// modes are the private modes of a terminal that a program has set, as DECSET does (xterm: CSI ? Pm h),
// by their numbers.
type modes struct {
	set  map[string]bool
	rest []byte // the beginning of a sequence whose end has not come
}

// The modes that are not a matter of the program's screen alone.
const (
	cursorMode = "25" // the cursor is shown; set from the beginning
	longestCSI = 64   // longer ones are none that set modes
)

// screens are modes that show a second screen.
var screens = []string{"47", "1047", "1049"}

// follow notes what output sets.
func (m *modes) follow(p []byte) {
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
		end := bytes.IndexFunc(p[1:], func(r rune) bool { return r == 0x1b || r >= '@' && r <= '~' && r != '[' })
		if end < 0 {
			if len(p) <= longestCSI {
				m.rest = bytes.Clone(p)
			}
			return
		}
		if list, ok := strings.CutPrefix(string(p[1:end+1]), "[?"); ok && (p[end+1] == 'h' || p[end+1] == 'l') {
			for number := range strings.SplitSeq(list, ";") {
				m.note(number, p[end+1] == 'h')
			}
		}
		p = p[end+1:]
	}
}

// note notes one mode, by its number; programs set few.
func (m *modes) note(number string, on bool) {
	const most, longest = 64, 5
	if len(number) > longest || number == "" || strings.Trim(number, "0123456789") != "" {
		return
	}
	if m.set == nil {
		m.set = map[string]bool{}
	}
	if _, known := m.set[number]; known || len(m.set) < most {
		m.set[number] = on
	}
}

// away returns what brings the terminal into its usual state, and back what restores that of the
// program; second says that the program's screen is another one, which it has to draw anew.
func (m *modes) away() (away, back string, second bool) {
	var on []string
	for _, number := range slices.Sorted(maps.Keys(m.set)) {
		switch {
		case m.set[number] == (number == cursorMode):
			continue // as it is usually
		case number == cursorMode:
			away, back = away+"\x1b[?25h", back+"\x1b[?25l"
			continue
		case slices.Contains(screens, number):
			second = true
		}
		on = append(on, number)
	}
	for _, number := range on {
		away, back = "\x1b[?"+number+"l"+away, back+"\x1b[?"+number+"h"
	}
	return away + "\x1b[m", back, second
}
