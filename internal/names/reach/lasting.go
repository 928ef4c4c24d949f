// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// passing is an expression for the parts of names that the next run does not have again: dates and times,
// process numbers, and names of temporary files. A wrong match costs little: the directory is
// suggested in place of what is in it. It is compiled when it is needed: doing it at every start
// took 4 % of a short run.
var passing = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(strings.Join(passingForms, "|")) })

var passingForms = []string{
	`(^|[^0-9])(19|20)[0-9]{2}[-_.]?[01][0-9][-_.]?[0-3][0-9]([^0-9]|$)`,
	`[0-9]{5,}`,
	`(^|[-._+@])[0-9]{3,}([-._+@]|$)`,
	`^\.?te?mp[-._]?[A-Za-z0-9_]*[A-Z0-9][A-Za-z0-9_]*$`,
}

// lasting returns the deepest path at or above name of which no part looks as if it were made
// for one run. What the command's own directory and home lie in is taken as it is.
func (r *DeniedRun) lasting(name string) string {
	at := "/"
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "/"), "/") {
		next := path.Join(at, part)
		kept := inside(r.Dir, next) || inside(r.variable("HOME"), next)
		if !kept && forOneRun(part) {
			return at
		}
		at = next
	}
	return at
}

// forOneRun returns whether a name looks as if it were made for one run.
func forOneRun(part string) bool {
	if passing().MatchString(part) {
		return true
	}
	// What mktemp(3), uuid and hashes fill with letters and digits.
	const shortest = 6
	isWord := func(r rune) bool { return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	for word := range strings.FieldsFuncSeq(part, func(r rune) bool { return !isWord(r) }) {
		if len(word) >= shortest && jumbled(word) {
			return true
		}
	}
	return false
}

// jumbled returns whether a word is a hash, or changes between small letters, capitals and
// digits as words of languages do not: "Xa8sKd", but neither "sha256sum" nor "MyClass2".
func jumbled(word string) bool {
	const hash = 8
	kind := func(c byte) int {
		switch {
		case c >= '0' && c <= '9':
			return 0
		case c >= 'A' && c <= 'Z':
			return 1
		}
		return 2
	}
	changes := 0
	var seen [3]bool
	for i := range len(word) {
		seen[kind(word[i])] = true
		capital := i > 0 && kind(word[i-1]) == 1 && kind(word[i]) == 2 // it begins a word
		if i > 0 && kind(word[i]) != kind(word[i-1]) && !capital {
			changes++
		}
	}
	switch {
	case !seen[0]:
		return false
	case len(word) >= hash && seen[2] && strings.Trim(word, "0123456789abcdef") == "":
		return true
	}
	return changes > 3 || seen[1] && seen[2] && changes > 2 && changes*3 > len(word)
}
