// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// Plural writes a number of things: "1 write", "3 writes".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Tilde shortens a path below the home directory.
func Tilde(name, home string) string {
	if home = strings.TrimSuffix(home, "/"); home == "" {
		return name
	}
	if rest, ok := strings.CutPrefix(name, home); ok && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return name
}

// ShellWords joins words so that a shell reads the same ones.
func ShellWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = ShellWord(w)
	}
	return strings.Join(out, " ")
}

// ShellWord quotes a word for a shell. What does not print is escaped in a form that
// bash, zsh and ksh read.
func ShellWord(w string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	if utf8.ValidString(w) && !strings.ContainsFunc(w, func(r rune) bool { return !text.Visible(r) }) {
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for len(w) > 0 {
		r, n := utf8.DecodeRuneInString(w)
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + w[:n])
		case r == '\n':
			b.WriteString(`\n`)
		case r == utf8.RuneError && n == 1, !text.Visible(r):
			for _, c := range []byte(w[:n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(w[:n])
		}
		w = w[n:]
	}
	return b.String() + "'"
}
