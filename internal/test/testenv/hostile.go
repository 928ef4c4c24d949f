// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Hostile returns names as an attacker gives them to files, programs and variables, so
// that a message with one of them does something to the terminal or to its own lines.
func Hostile() []string {
	return []string{
		"n\x1b]0;pwned\a", // a title, and with other numbers the clipboard
		"n\u009b2J",       // the same in one character, C1
		"n\x9b2J\xff",     // in one byte, which is not UTF-8
		"n\x7f\b\b",
		"n\nsallyport: all is well",
		"n\r\tall is well",
		"n\u2028all\u2029is\u0085well",
		"n\u202egpj.exe\u202c", // read from right to left
		"n\u2066x\u2069\u200e\u200f",
		"n\u200b\u200d\ufeff\u00ad", // nothing to see
	}
}

// Printed reports an error unless text has that many lines and nothing in them but what
// prints.
func Printed(t testing.TB, text string, lines int) {
	t.Helper()
	bad := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	if !utf8.ValidString(text) || strings.ContainsFunc(text, bad) {
		t.Errorf("this does not only print: %q", text)
	}
	if n := len(strings.Split(strings.TrimSuffix(text, "\n"), "\n")); n != lines {
		t.Errorf("%d lines, want %d: %q", n, lines, text)
	}
}
