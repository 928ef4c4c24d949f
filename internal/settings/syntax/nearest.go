// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"fmt"
	"strings"
)

// NearestClause returns the clause that names the known word nearest to word, or, when
// none is near, otherwise as it is.
func NearestClause(word string, known []string, otherwise string) string {
	switch best := NearestWord(word, known); {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case otherwise != "":
		return "; " + otherwise
	}
	return ""
}

// Shortened returns the index of the one of so many IDs that is id, or begins with it, and how many do:
// the index counts if that is one. Nothing begins with an empty id.
func Shortened(id string, ids int, at func(int) string) (index, n int) {
	for i := range ids {
		switch {
		case id != "" && at(i) == id:
			return i, 1
		case id != "" && strings.HasPrefix(at(i), id):
			index, n = i, n+1
		}
	}
	return index, n
}

// NearestWord returns the known word that word most likely stands for: one that
// begins with it, or the one with the fewest changed letters, at most a third of
// them. It is "" when there is none.
func NearestWord(word string, known []string) string {
	const longest = 64 // no flag and no word is that long
	if len(word) > longest {
		return ""
	}
	best, least := "", len(word)/3+1
	lower := strings.ToLower(word)
	for _, k := range known {
		if d := distance(lower, k); d < least {
			best, least = k, d
		}
	}
	if best != "" || len(strings.Trim(word, "-")) < 2 {
		return best
	}
	for _, k := range known {
		if strings.HasPrefix(k, lower) {
			return k
		}
	}
	return ""
}

// distance counts the letters to insert, drop, replace or swap with their
// neighbor to make b of a (Damerau-Levenshtein, the restricted form).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
