// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// bytesPerToken is the estimate that agents and their models share.
const bytesPerToken = 4

// TokenCount returns the estimated number of tokens in n bytes, rounded up; 0
// for negative n.
func TokenCount(n int) int {
	if n <= 0 {
		return 0
	}
	return (n-1)/bytesPerToken + 1
}

// lineCount returns the number of lines in s. A newline ends a line and does not
// begin one, so "a\n" and "a" are one line each and "" is none.
func lineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// TruncateMiddle returns s if it fits so many tokens, else its first and last half
// of them, cut at whole characters, around a mark that counts the missing tokens. The
// mark comes on top. Without tokens the result is the mark alone, for an empty s too.
// The format is that of Codex; if s is valid UTF-8, so is the result.
func TruncateMiddle(s string, tokens int) string {
	limit := tokenBytes(tokens)
	if len(s) <= limit && limit > 0 {
		return s
	}
	left := limit / 2
	right := len(s) - (limit - left)
	for left > 0 && !utf8.RuneStart(s[left]) {
		left--
	}
	for right < len(s) && !utf8.RuneStart(s[right]) {
		right++
	}
	return fmt.Sprintf("%s…%d tokens truncated…%s", s[:left], TokenCount(len(s)-limit), s[right:])
}

// FormatTruncated returns s if it fits so many tokens, else a warning with its
// estimated tokens and its lines, an empty line, and the result of TruncateMiddle.
func FormatTruncated(s string, tokens int) string {
	if len(s) <= tokenBytes(tokens) {
		return s
	}
	return fmt.Sprintf("Warning: truncated output (original token count: %d)\nTotal output lines: %d\n\n%s",
		TokenCount(len(s)), lineCount(s), TruncateMiddle(s, tokens))
}

// tokenBytes returns the estimated bytes of so many tokens.
func tokenBytes(tokens int) int {
	return bytesPerToken * min(max(tokens, 0), math.MaxInt/bytesPerToken)
}
