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

// Budget is how much text may be kept. The zero Budget is no bytes. Make one
// with Bytes or Tokens.
type Budget struct {
	n      int
	tokens bool
}

// Bytes returns a budget of n bytes of UTF-8; negative is none.
func Bytes(n int) Budget { return Budget{n: max(n, 0)} }

// Tokens returns a budget of n tokens of four bytes each; negative is none.
func Tokens(n int) Budget { return Budget{n: max(n, 0), tokens: true} }

// DefaultBudget is what a model gets of an output when nothing is known about
// the model: 10 000 bytes, the fallback of Codex.
func DefaultBudget() Budget { return Bytes(10_000) }

// bytes returns the budget in bytes.
func (b Budget) bytes() int {
	switch {
	case !b.tokens:
		return b.n
	case b.n > math.MaxInt/bytesPerToken:
		return math.MaxInt
	}
	return b.n * bytesPerToken
}

// TokenCount returns the estimated number of tokens in n bytes, rounded up; 0
// for negative n.
func TokenCount(n int) int {
	if n <= 0 {
		return 0
	}
	return (n-1)/bytesPerToken + 1
}

// LineCount returns the number of lines in s. A newline ends a line and does
// not begin one, so "a\n" and "a" are one line each and "" is none.
func LineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// TruncateMiddle returns s if it fits the budget, else its first and last half
// budget, cut at whole characters, around a mark that counts what is missing:
// in tokens for a budget of tokens, in characters for one of bytes. The mark
// comes on top of the budget. A budget of zero gives the mark alone, for an
// empty s too. The format is that of Codex; if s is valid UTF-8, so is the
// result.
func TruncateMiddle(s string, budget Budget) string {
	limit := budget.bytes()
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
	if budget.tokens {
		return fmt.Sprintf("%s…%d tokens truncated…%s", s[:left], TokenCount(len(s)-limit), s[right:])
	}
	return fmt.Sprintf("%s…%d chars truncated…%s", s[:left], utf8.RuneCountInString(s[left:right]), s[right:])
}

// FormatTruncated returns s if it fits the budget, else a warning with its
// estimated tokens and its lines, an empty line, and what TruncateMiddle makes
// of it.
func FormatTruncated(s string, budget Budget) string {
	if len(s) <= budget.bytes() {
		return s
	}
	return fmt.Sprintf("Warning: truncated output (original token count: %d)\nTotal output lines: %d\n\n%s",
		TokenCount(len(s)), LineCount(s), TruncateMiddle(s, budget))
}
