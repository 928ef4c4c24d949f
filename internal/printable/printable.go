// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printable shows text that others chose, such as names of files, so that it
// moves no terminal, adds no line and hides nothing.
//
// What does not print ([unicode.IsPrint]) is escaped as in Go source: control characters
// (C0, C1 and DEL), marks that turn or join text (bidirectional and zero-width ones), line
// and paragraph separators, and bytes that are not UTF-8. All functions leave text that
// they have returned as it is, so that a sentence may quote one that is escaped already.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Word returns s as it is, or in quotes where it is empty or has something that does not
// print. It is for a path or a name in a sentence.
func Word(s string) string {
	if s == "" || Line(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// Line returns s with everything escaped that does not print, line ends included. It is
// for a sentence that has words of others in it.
func Line(s string) string { return escape(s, false) }

// Lines is Line for a text of several lines: its line ends stay.
func Lines(s string) string { return escape(s, true) }

func escape(s string, lines bool) string {
	var b strings.Builder
	done := 0 // how much of s is in b
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if invalid := r == utf8.RuneError && n == 1; invalid || !unicode.IsPrint(r) && (r != '\n' || !lines) {
			quoted := strconv.Quote(s[i : i+n])
			b.WriteString(s[done:i] + quoted[1:len(quoted)-1])
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return s
	}
	return b.String() + s[done:]
}
