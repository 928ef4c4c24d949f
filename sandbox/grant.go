// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
)

// A Grant opens one thing. It has either a Path with a Level, or an Addr, or a
// Name; the zero Grant opens nothing. Grants are comparable.
type Grant struct {
	Level Level  // LevelRead or LevelWrite; with Path
	Path  string // absolute and clean; the path and everything below it
	Net   string // protocol that Addr was asked for with, for display
	Addr  string // "host:port", or "host" for every port
	Name  string // a named grant, such as "git"; what it opens is decided by whoever builds the walls
}

// String returns the flag of the command line that gives the grant, such as
// "--rw /data", "--ro /etc/x", "--allow-host example.com:443" or
// "--grant git". It is "" for a grant that opens nothing.
func (g Grant) String() string {
	switch {
	case g.Name != "":
		return "--grant " + quote(g.Name)
	case g.Addr != "":
		if g.Net == "unix" {
			return ""
		}
		return "--allow-host " + quote(g.Addr)
	case g.Path == "":
		return ""
	case g.Level == LevelWrite:
		return "--rw " + quote(g.Path)
	case g.Level == LevelRead:
		return "--ro " + quote(g.Path)
	}
	return ""
}

// quote returns s as one word of a shell.
func quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// With returns the policy with the grants added. It is never narrower than p:
// what p allowed stays allowed. Bind the policy first; a grant is judged by the
// entries that have paths.
//
// A path grant raises the level at its path. It does not reopen what a deny
// entry (other than one for "/") or a deny glob has shut, neither at its path nor
// below it, and more specific read entries below it stay. An address grant opens
// one host, and turns NetworkNone into NetworkProxy. Named grants are kept and
// handed on in [Resolved]; Rule knows nothing of them. Grants that open nothing,
// that have a path that is not clean or an address that is a pattern, or that are
// about unix sockets, change nothing.
func (p Policy) With(grants ...Grant) Policy {
	if p.mode == Full {
		return p
	}
	for _, g := range grants {
		switch {
		case g.Name != "":
			p.named = insert(p.named, g.Name)
		case g.Addr != "":
			p = p.withAddr(g)
		case g.Path != "":
			p = p.withPath(g)
		}
	}
	return p.seal()
}

// insert returns a new sorted slice with s in it.
func insert(list []string, s string) []string {
	i, found := slices.BinarySearch(list, s)
	if found {
		return list
	}
	return slices.Insert(slices.Clone(list), i, s)
}

func (p Policy) withAddr(g Grant) Policy {
	host, port, ok := splitAddr(g.Addr)
	if !ok || g.Net == "unix" || strings.Contains(host, "*") {
		return p
	}
	if p.net == NetworkHost || isLocal(host) || hostGranted(p.hosts, host, port) {
		return p
	}
	p.hosts = insert(p.hosts, joinAddr(host, port))
	p.net = NetworkProxy
	return p
}

func (p Policy) withPath(g Grant) Policy {
	if p.mode != Managed || p.open || !isClean(g.Path) || g.Level == LevelDeny || g.Level > LevelWrite {
		return p
	}
	c := p.compiled()
	// An entry for a path that has the level already is left out: it would be
	// a writable root of its own, with protected names that were open before.
	if c.level(g.Path) >= g.Level {
		return p
	}
	if at, l := nearest(c.levels, g.Path); at != "" && l == LevelDeny {
		return p
	}
	// The entry replaces those for the same path, which would hold as the
	// stricter ones.
	kept := slices.DeleteFunc(p.Entries(), func(e Entry) bool {
		name, ok := e.Place.Absolute()
		return ok && name == g.Path
	})
	p.entries, p.listed = append(kept, PathEntry(path.Clean(g.Path), g.Level)), true
	return p.seal()
}
