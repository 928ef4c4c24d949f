// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import "strings"

// Covers reports whether an allow entry with the pattern wide opens all that one with the pattern
// narrow opens. It is false where that is not certain, and for patterns that are not valid.
func Covers(wide, narrow string) bool {
	w, reason := parsePattern(wide)
	n, also := parsePattern(narrow)
	if reason != "" || also != "" || n.first < w.first || n.last > w.last {
		return false
	}
	switch {
	case n.all || w.prefix.IsValid() != n.prefix.IsValid() && !w.all:
		return w.all && n.all
	case n.prefix.IsValid():
		return !w.all && w.coversRange(&n)
	}
	return w.coversName(&n)
}

// coversRange is Covers for addresses and ranges. One that opens protected addresses is not
// covered by one that leaves them closed.
func (w *pattern) coversRange(n *pattern) bool {
	switch {
	case w.prefix == n.prefix:
		return true
	case w.prefix.Bits() > n.prefix.Bits() || !w.prefix.Contains(n.prefix.Addr()):
		return false
	case n.prefix.IsSingleIP():
		g := guardOf(n.prefix.Addr())
		return g == guardNone || g == guardPrivate && isProtectedRange(w.prefix)
	}
	return !isProtectedRange(n.prefix) || isProtectedRange(w.prefix)
}

// coversName is Covers for names.
func (w *pattern) coversName(n *pattern) bool {
	host := Host{name: n.suffix}
	exact := !n.isWild()
	switch local := exact && host.IsLocal() || host.underLocalhost(); {
	case w.lead == n.lead && w.suffix == n.suffix &&
		strings.Join(w.labels, ".") == strings.Join(n.labels, "."):
		return !w.all
	case local && (w.all || w.labels != nil || !host.underLocalhost()):
		return false // these do not open local names
	case w.all:
		return true
	case w.labels != nil:
		head, ok := strings.CutSuffix(n.suffix, "."+w.suffix)
		if w.suffix == "" {
			head, ok = n.suffix, true
		}
		return exact && ok && w.matchesHead(head)
	case w.lead == leadNone:
		return false
	case n.suffix == w.suffix:
		return w.lead == leadApex || n.labels != nil || n.lead == leadBelow
	}
	return strings.HasSuffix(n.suffix, "."+w.suffix)
}
