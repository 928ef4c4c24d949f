// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// fold returns the form in which words are compared that agree under canonical caseless
// matching (Unicode 3.13, D145). Lower case ASCII is returned as it is.
//
// Package cases of golang.org/x/text has the same; its tables would cost every start of the
// program 3 % of its time.
func fold(word string) string {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			return norm.NFD.String(foldCase(norm.NFD.String(word)))
		}
	}
	return strings.ToLower(word)
}

// fullFolds are the letters in NFD that fold to several others.
var fullFolds = sync.OnceValue(func() map[rune]string {
	return map[rune]string{
		'ß': "ss", 'ẞ': "ss", 'ŉ': "ʼn", 'ẚ': "aʾ", 'և': "եւ",
		'ﬀ': "ff", 'ﬁ': "fi", 'ﬂ': "fl", 'ﬃ': "ffi", 'ﬄ': "ffl", 'ﬅ': "st", 'ﬆ': "st",
		'ﬓ': "մն", 'ﬔ': "մե", 'ﬕ': "մի", 'ﬖ': "վն", 'ﬗ': "մխ",
	}
})

// foldCase returns a text in NFD with full case folding.
func foldCase(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch full, ok := fullFolds()[r]; {
		case ok:
			b.WriteString(full)
		case r == 'ı': // upper case has no dot either, which only Turkish minds
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToLower(unicode.ToUpper(r)))
		}
	}
	return b.String()
}
