// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// cut ends a command line that was shortened.
const cut = "..."

// ShowCommand returns an argument vector as one line for people and logs, of at most
// so many bytes: words are joined by spaces, characters that a terminal acts on become
// '?', and what looks like a secret is masked as in [Mask].
func ShowCommand(args []string, most int) string {
	return shorten(strings.Map(visible, strings.Join(Mask(args), " ")), most)
}

// visible replaces characters that a terminal acts on or that reverse the order of
// others. Any space is a space.
func visible(r rune) rune {
	if unicode.IsSpace(r) {
		return ' '
	}
	if text.Visible(r) && r != utf8.RuneError {
		return r
	}
	return '?'
}

// shorten cuts a text at a character and marks the cut.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	if most <= len(cut) {
		return cut[:max(most, 0)]
	}
	end := most - len(cut)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + cut
}

// Mentioned returns the names that a text has as words. A name in a longer one does not count.
func Mentioned(text []byte, names []string) []string {
	var out []string
	for _, name := range names {
		if word := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`); word.Match(text) {
			out = append(out, name)
		}
	}
	return out
}
