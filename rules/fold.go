// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// fold returns the form in which words are compared that agree under canonical caseless
// matching (Unicode 3.13, D145). Lower case ASCII is returned as it is.
func fold(word string) string {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			return norm.NFD.String(cases.Fold().String(norm.NFD.String(word)))
		}
	}
	return strings.ToLower(word)
}
