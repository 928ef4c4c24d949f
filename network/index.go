// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"slices"
	"strings"
)

// An index finds entries by the labels of a name and by the lengths of ranges, so that its cost
// does not depend on how many entries there are.
type index struct {
	names  map[string]*names // by a name, or by what is behind the wildcards of a pattern
	depth  int               // labels of the longest of these that a wildcard is before
	ranges map[netip.Prefix][]rule
	bits4  []int // lengths of ranges, the longest first
	bits6  []int
	all    []rule // "*"
}

// names are the entries that end in one name.
type names struct {
	exact []rule // for the name
	below []rule // for all names below it
	inner []inner
}

type inner struct {
	rule
	pattern *pattern
}

// A rule is an entry with what it is limited to.
type rule struct {
	entry       *Entry
	first, last uint16 // ports
	protocols   uint8  // bits; 0 means all
}

func (r *rule) covers(q *Request) bool {
	switch {
	case q.anyPort:
		return true
	case q.Port == 0: // all of them
		return r.first <= 1 && r.last == 65535 && r.protocols == 0
	}
	return r.first <= q.Port && q.Port <= r.last && (r.protocols == 0 || r.protocols>>q.Protocol&1 != 0)
}

// first returns the first entry that covers a request, or nil.
func first(rules []rule, q *Request) *Entry {
	for i := range rules {
		if rules[i].covers(q) {
			return rules[i].entry
		}
	}
	return nil
}

func (x *index) add(p *pattern, e *Entry) {
	r := rule{entry: e, first: p.first, last: p.last}
	for _, protocol := range e.Protocols {
		r.protocols |= 1 << protocol
	}
	switch {
	case p.all:
		x.all = append(x.all, r)
	case p.prefix.IsValid():
		x.addRange(p.prefix, r)
	default:
		x.addName(p, r)
	}
}

func (x *index) addRange(p netip.Prefix, r rule) {
	if x.ranges == nil {
		x.ranges = map[netip.Prefix][]rule{}
	}
	bits := &x.bits6
	if p.Addr().Is4() {
		bits = &x.bits4
	}
	if !slices.Contains(*bits, p.Bits()) {
		*bits = append(*bits, p.Bits())
		slices.SortFunc(*bits, func(a, b int) int { return b - a })
	}
	x.ranges[p] = append(x.ranges[p], r)
}

func (x *index) addName(p *pattern, r rule) {
	if x.names == nil {
		x.names = map[string]*names{}
	}
	n := x.names[p.suffix]
	if n == nil {
		n = &names{}
		x.names[p.suffix] = n
	}
	if p.suffix != "" && p.isWild() {
		x.depth = max(x.depth, 1+strings.Count(p.suffix, "."))
	}
	if p.labels != nil {
		n.inner = append(n.inner, inner{r, p})
		return
	}
	if p.lead != leadBelow {
		n.exact = append(n.exact, r)
	}
	if p.lead != leadNone {
		n.below = append(n.below, r)
	}
}

// hosts appends the names that entries spell.
func (x *index) hosts(list []Host) []Host {
	for name, n := range x.names {
		if len(n.exact) > 0 && name != "" {
			list = append(list, Host{name: name})
		}
	}
	return list
}

// name returns an entry for the name of a request: one for that very name, or else one for the
// longest part of it. With spelled, entries count only if they spell the name or are for what is
// below localhost.
func (x *index) name(q *Request, spelled bool) *Entry {
	name := q.Host.name
	if n := x.names[name]; n != nil {
		if e := first(n.exact, q); e != nil {
			return e
		}
	}
	if spelled && !q.Host.underLocalhost() {
		return nil
	}
	rest := name
	for skip := strings.Count(name, ".") - x.depth; skip > 0; skip-- {
		_, rest, _ = strings.Cut(rest, ".")
	}
	for rest != "" {
		_, rest, _ = strings.Cut(rest, ".")
		n := x.names[rest]
		if n == nil {
			continue
		}
		if e := first(n.below, q); e != nil {
			return e
		}
		if spelled {
			continue
		}
		head := name[:len(name)-len(rest)]
		for i := range n.inner {
			in := &n.inner[i]
			if in.covers(q) && in.pattern.matchesHead(strings.TrimSuffix(head, ".")) {
				return in.entry
			}
		}
	}
	return nil
}

// addr returns an entry for an address: of the smallest range, if it opens what the guard
// guards.
func (x *index) addr(addr netip.Addr, q *Request, g guard) *Entry {
	bits := x.bits6
	if addr.Is4() {
		bits = x.bits4
	}
	for _, n := range bits {
		p, _ := addr.Prefix(n)
		if g != guardNone && n != addr.BitLen() && (g == guardMetadata || !isProtectedRange(p)) {
			continue
		}
		if e := first(x.ranges[p], q); e != nil {
			return e
		}
	}
	return nil
}
