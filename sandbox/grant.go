// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
)

// Grant allows one thing more. It has either a Path with a Level, or an Addr, or a Name, or an
// Opening; the zero Grant allows nothing. Grants are comparable.
type Grant struct {
	Level Level  // LevelRead or LevelWrite; with Path
	Path  string // absolute and clean; the path and everything below it
	Net   string // protocol that Addr was asked for with, for display
	Addr  string // "host:port", or "host" for every port
	Name  string // a named grant, such as "git"; the executor knows what it allows
	// Opening is a name for --allow, such as "ptrace": a part of what the system call filter
	// refuses. It is no part of a policy, and [Policy.With] ignores it.
	Opening string
}

// String returns the grant in the form of a suggestion: "--rw /data", "--ro /etc/x",
// "--allow-host example.com:443", "--grant git" or "--allow ptrace", quoted for a shell. It is
// "" for a grant that allows nothing. [ParseGrants] reads it.
func (g Grant) String() string {
	switch {
	case g.Opening != "":
		return "--allow " + quote(g.Opening)
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

// With returns the policy with the grants added. What p allows stays allowed. Bind the
// policy first: grants apply to entries that have paths.
//
// A path grant raises the level at its path. It does not reopen what a deny entry (other
// than one for "/") or a deny glob denies, at its path or below it, and more specific read
// entries below it stay. An address grant allows one host, and turns NetworkNone into
// NetworkProxy. Named grants are kept for [Resolved] and do not change [Policy.Rule]. A
// grant has no effect if it allows nothing, has a path that is not clean or a pattern as an
// address, or is about a unix socket.
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
	// A path that has the level already gets no entry: it would be a writable root, with
	// protected names that were writable before.
	if c.level(g.Path) >= g.Level {
		return p
	}
	if at, l := nearest(c.levels, g.Path); at != "" && l == LevelDeny {
		return p
	}
	// The entry replaces those for the same path, which would apply as the stricter ones.
	kept := slices.DeleteFunc(p.Entries(), func(e Entry) bool {
		name, ok := e.Place.Absolute()
		return ok && name == g.Path
	})
	p.entries, p.listed = append(kept, PathEntry(path.Clean(g.Path), g.Level)), true
	return p.seal()
}

// ParseGrants parses grants in the form of [Grant.String], separated by spaces. It returns
// false for any other text, also for an empty one.
func ParseGrants(text string) ([]Grant, bool) {
	words, ok := splitWords(text)
	if !ok || len(words) == 0 || len(words)%2 != 0 {
		return nil, false
	}
	var grants []Grant
	for ; len(words) > 0; words = words[2:] {
		g := Grant{Path: words[1]}
		switch words[0] {
		case "--rw":
			g.Level = LevelWrite
		case "--ro":
			g.Level = LevelRead
		case "--allow-host":
			g = Grant{Addr: words[1]}
		case "--grant":
			g = Grant{Name: words[1]}
		case "--allow":
			g = Grant{Opening: words[1]}
		default:
			return nil, false
		}
		if words[1] == "" {
			return nil, false
		}
		grants = append(grants, g)
	}
	return grants, true
}

// splitWords splits words that quote has quoted.
func splitWords(text string) ([]string, bool) {
	var words []string
	for text != "" {
		var word strings.Builder
		for text != "" && text[0] != ' ' {
			switch text[0] {
			case '\'':
				inner, rest, ok := strings.Cut(text[1:], "'")
				if !ok {
					return nil, false
				}
				word.WriteString(inner)
				text = rest
			case '\\':
				if len(text) < 2 {
					return nil, false
				}
				word.WriteByte(text[1])
				text = text[2:]
			default:
				word.WriteByte(text[0])
				text = text[1:]
			}
		}
		words = append(words, word.String())
		if text == " " {
			return nil, false
		}
		text = strings.TrimPrefix(text, " ")
	}
	return words, true
}
