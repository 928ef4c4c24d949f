// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "slices"

// Covers returns whether p allows everything that q allows, and asks at most about what q
// asks about or allows; false means "not known to". It is a partial order: reflexive,
// transitive, and policies that cover each other allow the same.
//
// For bound policies the file part is compared exactly, except that deny globs are compared
// as text: every glob of p must be one of q. For other policies it is compared only where
// binding cannot change the answer. A mode that restricts more never covers one that
// restricts less.
func (p Policy) Covers(q Policy) bool {
	switch {
	case p.mode < q.mode:
		return false
	case p.mode == Full:
		return true
	case !p.coversNet(q):
		return false
	case p.mode == External:
		return true
	}
	return p.coversFiles(q)
}

// coversNet compares networks, granted hosts and named grants.
func (p Policy) coversNet(q Policy) bool {
	if p.net < q.net {
		return false
	}
	if p.net == NetworkProxy && q.net == NetworkProxy {
		for _, h := range q.hosts {
			host, port, ok := splitAddr(h)
			if !ok || !hostGranted(p.hosts, host, port) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(q.named, func(n string) bool { return !slices.Contains(p.named, n) })
}

// coversFiles compares the file parts of two managed policies.
func (p Policy) coversFiles(q Policy) bool {
	if p.open {
		return true
	}
	pc, qc := p.compiled(), q.compiled()
	for _, g := range pc.globs {
		if !slices.ContainsFunc(qc.globs, func(o Glob) bool { return o.pattern == g.pattern }) {
			return false
		}
	}
	switch {
	case qc.highest() <= pc.lowest():
		// However both are bound, no file of q has more than any file of p.
		return true
	case len(pc.loose) > 0 || len(qc.loose) > 0:
		return slices.Equal(canonical(p.list()), canonical(q.list()))
	}
	// The level changes only at rules, so it is enough to compare there.
	if qc.root > pc.root {
		return false
	}
	for _, r := range slices.Concat(pc.rules, qc.rules) {
		if qc.level(r.Path) > pc.level(r.Path) {
			return false
		}
	}
	return true
}

// highest returns a level that no file exceeds, however loose entries are bound.
func (c *compiled) highest() Level {
	l := c.root
	for _, r := range c.rules {
		l = max(l, r.Level)
	}
	for _, e := range c.loose {
		l = max(l, e.Level)
	}
	return l
}

// lowest returns a level that every file has that no glob denies, however loose entries are
// bound.
func (c *compiled) lowest() Level {
	l := min(c.root, c.limit)
	for _, r := range c.rules {
		l = min(l, r.Level)
	}
	for _, e := range c.loose {
		l = min(l, e.Level)
	}
	// A writable place has protected names, wherever it is bound.
	if len(c.loose) > 0 {
		l = min(l, LevelRead)
	}
	return l
}
