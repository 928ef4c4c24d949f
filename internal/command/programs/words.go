// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Placeholders in words that are not known as a whole. They are noncharacters, which no text contains.
const (
	// Gap is a part of a word that is not known, of any length.
	Gap = "\uFDD0"
	// Rest, which is a word of its own, is any number of unknown words, none included.
	Rest = "\uFDD1"
)

// Dynamic reports whether a word has parts that are not known.
func Dynamic(word string) bool { return strings.Contains(word, Gap) || strings.Contains(word, Rest) }

// Literal returns the text of a word without expansions, or "".
func Literal(w *syntax.Word) string {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.Contains(lit.Value, "\\") {
			return lit.Value
		}
	}
	var b strings.Builder
	for _, p := range SplitWord(w) {
		if p.Part != nil || p.Kind == BarePart {
			return ""
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// Fixed reports whether a word has no expansions; patterns and braces may be in it.
func Fixed(w *syntax.Word) bool {
	return !slices.ContainsFunc(SplitWord(w), func(p Piece) bool {
		return p.Kind == BarePart ||
			p.Kind == QuotedPart
	})
}

// QuoteWords writes words as a shell reads them.
func QuoteWords(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if w == Rest {
			b.WriteString(Gap)
		} else {
			b.WriteString("'" + strings.ReplaceAll(w, "'", `'\''`) + "'")
		}
	}
	return b.String()
}
