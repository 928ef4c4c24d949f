// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden replaces a value that looks like a secret.
const hidden = "***"

// cut ends a command line that was shortened.
const cut = "..."

// ShowCommand returns an argument vector as one line for people and logs, of at most
// so many bytes: words are joined by spaces, characters that a terminal acts on become
// '?', and values that look like secrets are hidden. Those are the values of names of
// which [LooksSecret] is true: in NAME=value, in --name=value, in --name value and in
// "name: value", also inside of a script that is one argument. A secret without a name
// is shown.
func ShowCommand(args []string, most int) string {
	var b strings.Builder
	next := false // the next word is a secret
	for i, arg := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		for len(arg) > 0 && b.Len() <= most {
			space := len(arg) - len(strings.TrimLeftFunc(arg, unicode.IsSpace))
			b.WriteString(strings.Repeat(" ", min(space, most)))
			arg = arg[space:]
			end := strings.IndexFunc(arg, unicode.IsSpace)
			if end < 0 {
				end = len(arg)
			}
			var word string
			word, next = hide(arg[:end], next)
			b.WriteString(strings.Map(visible, word))
			arg = arg[end:]
		}
		if b.Len() > most {
			break
		}
	}
	return shorten(b.String(), most)
}

// hide returns a word with its secret hidden, and whether the next word is one.
func hide(word string, secret bool) (shown string, next bool) {
	if word == "" {
		return "", secret
	}
	if secret && !strings.HasPrefix(word, "-") {
		// The scheme of an authorization is between the name and the secret.
		if strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic") {
			return word, true
		}
		return hidden, false
	}
	if name, value, ok := strings.Cut(word, "="); ok && value != "" && LooksSecret(name) {
		return name + "=" + hidden, false
	}
	if name, value, ok := strings.Cut(word, ":"); ok && LooksSecret(name) && !strings.HasPrefix(value, "//") {
		if value == "" {
			return word, true
		}
		return name + ":" + hidden, false
	}
	bare := strings.TrimLeft(word, "-")
	flag := bare != word && LooksSecret(bare) && !strings.Contains(word, "=")
	header := strings.EqualFold(strings.Trim(word, `"'`), "authorization:")
	return word, flag || header
}

// visible replaces characters that a terminal acts on or that reverse the order of
// others.
func visible(r rune) rune {
	if unicode.IsPrint(r) && r != utf8.RuneError {
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
