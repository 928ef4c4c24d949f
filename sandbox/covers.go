// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/text"
)

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

// Bounds returns nil if p covers q, and else a [*WiderError]. Both must be bound. Real follows the symbolic
// links of a path on the machine where the command runs, as its sandbox will; nil compares paths as text.
func (p Policy) Bounds(q Policy, real func(string) string) error {
	p, q = p.withoutLinks(real), q.withoutLinks(real)
	if p.Covers(q) {
		return nil
	}
	return &WiderError{What: p.lacks(q)}
}

// withoutLinks returns the policy with real paths.
func (p Policy) withoutLinks(real func(string) string) Policy {
	if real == nil || p.mode != Managed || p.open {
		return p
	}
	p.entries, p.listed = slices.Clone(p.list()), true
	for i := range p.entries {
		if at := &p.entries[i].Place; at.Kind == PlacePath && path.IsAbs(at.Path) {
			at.Path = real(at.Path)
		}
	}
	return p.seal()
}

// lacks names something that q allows and p, which does not cover it, does not, behind "it may".
func (p Policy) lacks(q Policy) string {
	switch {
	case p.mode < q.mode:
		return "run outside of the sandbox"
	case p.net < q.net:
		return "use the network " + q.net.String()
	}
	for _, n := range q.named {
		if !slices.Contains(p.named, n) {
			return "use the grant " + n
		}
	}
	if p.mode == Managed {
		for _, e := range slices.Concat(q.list(), p.list()) {
			if at, ok := e.Place.Absolute(); ok && q.LevelAt(at) > p.LevelAt(at) {
				return q.LevelAt(at).String() + " " + text.Word(at)
			}
		}
	}
	if p.net == NetworkProxy && !p.coversNet(q) {
		return "reach other hosts"
	}
	return "use what is denied by a pattern, or a place that is not known"
}

// Writes returns the absolute paths of the entries of a managed policy that make something writable.
func (p Policy) Writes() (paths []string) {
	for _, e := range p.list() {
		if at, ok := e.Place.Absolute(); ok && e.Level == LevelWrite && !p.open {
			paths = append(paths, at)
		}
	}
	return paths
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
