// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"strings"
)

// errWords is a quote or a backslash without its end.
var errWords = errors.New("unbalanced quote")

// splitWords splits a line into words as a POSIX shell does, without expansions: operators
// are ordinary characters, and # at the beginning of a word begins a comment.
func splitWords(line string) ([]string, error) {
	var words []string
	for i := 0; i < len(line); {
		switch line[i] {
		case ' ', '\t', '\n':
			i++
		case '#':
			n := strings.IndexByte(line[i:], '\n')
			if n < 0 {
				return words, nil
			}
			i += n
		default:
			word, n, err := firstWord(line[i:])
			if err != nil {
				return nil, err
			}
			words = append(words, word)
			i += n
		}
	}
	return words, nil
}

// firstWord returns the word that s begins with, without quotes, and its length in s.
func firstWord(s string) (word string, n int, err error) {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			return b.String(), i, nil
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '\\' && quote != '\'':
			if i++; i == len(s) {
				return "", 0, errWords
			}
			if quote == '"' && !strings.ContainsRune("$`\"\\\n", rune(s[i])) {
				b.WriteByte('\\')
			}
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	if quote != 0 {
		return "", 0, errWords
	}
	return b.String(), len(s), nil
}

// JoinWords returns words as one would type them in a shell, in quotes where they need them.
// Words with a NUL byte cannot be typed.
func JoinWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if strings.ContainsRune(word, 0) {
			return "unable to render example"
		}
		quoted[i] = quoteWord(word)
	}
	return strings.Join(quoted, " ")
}

// quoteWord returns a word in the quotes that it needs.
func quoteWord(word string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("+-./:@]_", r)
	}
	switch {
	case word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }):
		return word
	case strings.ContainsAny(word, `'\`):
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(word) + `"`
	}
	return "'" + word + "'"
}
