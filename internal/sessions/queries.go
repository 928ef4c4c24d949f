// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"bytes"
	"slices"
	"strings"
)

// A filter takes the questions out of a program's output that a terminal answers by typing: what
// it is, where the cursor stands, which colors it has. The screen of the session has answered
// already, once; each terminal that is attached, or that is shown the output later, would type
// another answer into the program. The zero filter is ready.
type filter struct {
	held   []byte // the beginning of a sequence whose end has not come
	free   bool   // within a string that is passed on because it is long
	ending bool   // held is ESC, which may end such a string
}

const (
	esc = 0x1b
	// maxQuery is the length of a string that may be a question. Longer ones, such as pictures,
	// are passed on.
	maxQuery = 512
)

// pass returns output without questions. The beginning of a sequence waits for its end.
func (f *filter) pass(p []byte) []byte {
	var out []byte
	for _, b := range p {
		switch {
		case f.free && b == esc:
			f.free, f.held = false, append(f.held, b)
			f.ending = true
		case f.free:
			out = append(out, b)
			f.free = b != 0x07 && b != 0x18 && b != 0x1a
		case f.ending && b == '\\':
			out = append(out, esc, b)
			f.held, f.ending = f.held[:0], false
		case len(f.held) == 0 && b == 0x05: // ENQ
		case len(f.held) == 0 && b != esc:
			out = append(out, b)
		default:
			f.ending = false
			f.held = append(f.held, b)
			out = f.decide(out)
		}
	}
	return out
}

// decide passes on or drops what is held, if that can be told yet.
func (f *filter) decide(out []byte) []byte {
	s := f.held
	n, last := len(s), s[len(s)-1]
	end := func(asks bool) []byte {
		f.held = f.held[:0]
		if !asks {
			out = append(out, s...)
		}
		return out
	}
	switch {
	case n == 1:
		return out
	case last == 0x18 || last == 0x1a: // CAN and SUB end each sequence
		return end(false)
	case isString(s) && (last == 0x07 || n > 3 && last == '\\' && s[n-2] == esc):
		return end(asksString(s))
	case isString(s) && n > 3 && s[n-2] == esc: // another sequence begins in it
		out = append(out, s[:n-2]...)
		f.held = append(f.held[:0], esc, last)
		return f.decide(out)
	case isString(s) && n > maxQuery && last != esc:
		f.free = true
		return end(false)
	case isString(s):
		return out
	case last == esc:
		out = append(out, s[:n-1]...)
		f.held = append(f.held[:0], esc)
		return out
	case s[1] == '[' && (n == 2 || last < 0x40 && n < maxQuery):
		return out
	case s[1] == '[':
		return end(asksCSI(string(s[2:n-1]), last))
	case last < 0x30 && n < maxQuery: // ESC with intermediates
		return out
	}
	return end(n == 2 && last == 'Z')
}

// isString reports whether a sequence is a string: OSC, DCS, APC, PM or SOS.
func isString(s []byte) bool { return bytes.IndexByte([]byte("]P_^X"), s[1]) >= 0 }

// asksCSI reports whether a control sequence is a question.
func asksCSI(params string, final byte) bool {
	switch final {
	case 'c': // DA
		return true
	case 'n': // DSR; with > it sets keys
		return !strings.HasPrefix(params, ">")
	case 'p', 'w': // DECRQM, DECRQPSR
		return strings.HasSuffix(params, "$")
	case 'q': // XTVERSION
		return strings.HasPrefix(params, ">")
	case 'x': // DECREQTPARM
		return !strings.HasSuffix(params, "$") && !strings.HasSuffix(params, "*")
	case 'y': // DECRQCRA
		return strings.HasSuffix(params, "*")
	case 'm', 'u', 'S': // keys of xterm and kitty, graphics
		return strings.HasPrefix(params, "?") || final == 'u' && (strings.HasSuffix(params, "$") || strings.HasSuffix(params, "&"))
	case 't': // XTWINOPS
		first, _, _ := strings.Cut(params, ";")
		return slices.Contains([]string{"11", "13", "14", "15", "16", "18", "19", "20", "21"}, first)
	}
	return false
}

// asksString reports whether a string is a question.
func asksString(s []byte) bool {
	text := string(s[2:])
	switch s[1] {
	case 'P': // DECRQSS, XTGETTCAP
		return strings.HasPrefix(text, "$q") || strings.HasPrefix(text, "+q")
	case ']': // colors, the clipboard
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\x07"), "\x1b\\")
		return slices.Contains(strings.Split(text, ";"), "?")
	case '_': // pictures of kitty
		control, _, _ := strings.Cut(text, ";")
		return strings.HasPrefix(text, "G") && strings.Contains(control, "a=q")
	}
	return false
}
