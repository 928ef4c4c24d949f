// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// A Listing is what a directory had in it at one moment: one read in place of a look at each of many names.
// The zero Listing knows nothing.
type Listing struct {
	// Names are those that were read.
	Names []string
	lower map[string]bool // nil where nothing is certain
}

// fewNames is how many names a directory may have so that comparing them takes less than looking.
const fewNames = 512

// List reads up to most names of an open directory. What was read before an error counts.
func List(f *os.File, most int) Listing {
	names, err := f.Readdirnames(most)
	l := Listing{Names: names}
	if err != nil && !errors.Is(err, io.EOF) || len(names) > fewNames || len(names) == most {
		return l
	}
	lower := make(map[string]bool, len(names))
	for _, name := range names {
		if !isASCII(name) {
			return l
		}
		lower[strings.ToLower(name)] = true
	}
	l.lower = lower
	return l
}

// Lacks reports whether it is certain that the directory had no entry that a name leads to. Some file
// systems take other letters for those of a name, so it is not where one is not ASCII; and some do not tell
// cases apart.
func (l Listing) Lacks(name string) bool {
	return l.lower != nil && isASCII(name) && !l.lower[strings.ToLower(name)]
}

func isASCII(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
}
