// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"slices"
	"strings"
	"sync"
)

// The lists of what a filter lets through. Sources: ECMA-48; xterm's ctlseqs; the protocols of kitty
// (keyboard, graphics) and iTerm2. A sequence that is on none of them is dropped: a terminal that
// knows it may answer, and one that does not shows nothing either.

// escapes are the final bytes of escape sequences of two bytes: save and restore, the keypad, moves,
// tabs, single and locking shifts, reset. DECID (Z) asks.
const escapes = `6789=>DEHMNOcno|}~\`

// drawsEscape reports whether an escape sequence with intermediates only draws: character sets and
// the sizes of lines. Leaving UTF-8 (ESC % @) and answers in eight bits (ESC SP G) are not among them.
func drawsEscape(intermediates string, final byte) bool {
	switch intermediates {
	case "(", ")", "*", "+", "-", ".", "/", `("`, "(%", "(&", `)"`, ")%", ")&":
		return true
	case "#":
		return strings.IndexByte("34568", final) >= 0
	case "%":
		return final == 'G'
	}
	return false
}

// controls are the control sequences that only draw, by their private prefix, intermediates and
// final byte. Among those that are not here: reports (c, n, x, $p, $w, ?u, ?m, >q), the window and its
// size (t but for the stack of titles), printers (i), conformance levels ("p).
var controls = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for _, group := range []struct{ prefix, intermediates, finals string }{
		{"", "", "@ABCDEFGHIJKLMPSTXZ`abdefgmrsu"},
		{"?", "", "JKhlrsW"},
		{">", "", "mnpsu"},
		{"<", "", "u"},
		{"=", "", "u"},
		{"", "!", "p"},
		{"", `"`, "q"},
		{"", " ", "q@A"},
		{"", "$", "rtvxz{"},
		{"", "*", "x"},
		{"", "'", "}~"},
		{"", "#", "{}pq"},
	} {
		for _, final := range group.finals {
			m[group.prefix+group.intermediates+string(final)] = true
		}
	}
	return m
})

// modes are the private modes that programs set. Those that a terminal answers at once, such as 2048
// (its size), are not among them.
var modes = strings.Fields("1 5 6 7 8 9 12 25 45 47 66 67 69 80 1000 1002 1003 1004 1005 1006 1007 " +
	"1010 1011 1015 1016 1034 1035 1036 1039 1045 1047 1048 1049 1070 2004 2026 2027 8452")

// drawsControl reports whether a control sequence only draws; before is all between ESC [ and the
// final byte.
func drawsControl(before []byte, final byte) bool {
	text := string(before)
	params := strings.TrimRight(text, " !\"#$%&'()*+,-./")
	intermediates := text[len(params):]
	prefix := ""
	if params != "" && params[0] >= '<' && params[0] <= '?' {
		prefix, params = params[:1], params[1:]
	}
	private := strings.ContainsAny(params, "<=>?")
	switch kind := prefix + intermediates + string(final); {
	case private:
		return false
	case kind == "t":
		first, _, _ := strings.Cut(params, ";")
		return first == "22" || first == "23" // the stack of titles
	case kind == "T":
		return !strings.Contains(params, ";") // with more it takes the mouse
	case kind == "h", kind == "l":
		return params == "4" || params == "20" // insertion and line feeds; 2 locks the keyboard
	case kind == "?h", kind == "?l", kind == "?r", kind == "?s":
		return !slices.ContainsFunc(strings.Split(params, ";"),
			func(m string) bool { return !slices.Contains(modes, m) })
	default:
		return controls()[kind]
	}
}

// commands are operating system commands that only draw, by their number: titles, colors, the
// working directory, links, progress and messages, the shape of the pointer, marks of prompts, and what
// sets colors back. True says that a question mark in one asks.
var commands = map[string]bool{
	"0": false, "1": false, "2": false, "4": true, "5": true, "7": false, "8": false, "9": false, "10": true, "11": true,
	"12": true, "13": true, "14": true, "15": true, "16": true, "17": true, "18": true, "19": true, "22": true,
	"104": true, "105": true, "110": true, "111": true, "112": true, "113": true, "114": true, "115": true, "116": true,
	"117": true, "118": true, "119": true, "133": false, "633": false, "777": false,
}

const (
	digits = "0123456789"
	base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" + digits + "+/="
)

// consists reports whether all of a text is of these characters.
func consists(text, of string) bool { return strings.Trim(text, of) == "" }

// drawsString reports whether a string only draws. Keys that a program defines (DECUDK), which the
// terminal would type, messages to a multiplexer and other strings of devices are not let through.
func drawsString(kind byte, content string) bool {
	switch kind {
	case 'k':
		return true
	case 'P': // sixels
		params, _, ok := strings.Cut(content, "q")
		return ok && consists(params, digits+";")
	case '_':
		return drawsPicture(content)
	case ']':
		return drawsCommand(content)
	}
	return false
}

// drawsCommand reports whether an operating system command only draws.
func drawsCommand(content string) bool {
	number, rest, _ := strings.Cut(content, ";")
	switch number {
	case "52": // the clipboard, when it is set
		to, data, ok := strings.Cut(rest, ";")
		return ok && consists(to, "cpqs01234567") && consists(data, base64)
	case "1337": // a mark, or a picture in the text, not a file that is stored
		file, isFile := strings.CutPrefix(rest, "File=")
		options, _, _ := strings.Cut(file, ":")
		return rest == "SetMark" || isFile && slices.Contains(strings.Split(options, ";"), "inline=1")
	}
	asks, known := commands[number]
	return known && !(asks && strings.Contains(rest, "?"))
}

// drawsPicture reports whether a command of kitty's graphics only draws. A terminal answers one that
// has an ID unless it says q=2, and with t= reads, or removes, a file.
func drawsPicture(content string) bool {
	control, _, _ := strings.Cut(content, ";")
	control, ok := strings.CutPrefix(control, "G")
	if !ok {
		return false
	}
	quiet, named := false, false
	for key := range strings.SplitSeq(control, ",") {
		name, value, _ := strings.Cut(key, "=")
		switch name {
		case "a":
			if !slices.Contains([]string{"t", "T", "p", "d", "f", "a", "c"}, value) {
				return false
			}
		case "t":
			if value != "d" {
				return false
			}
		case "i", "I":
			named = true
		case "q":
			quiet = value == "2"
		}
	}
	return quiet || !named
}
