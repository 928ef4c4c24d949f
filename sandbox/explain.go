// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"strings"
)

// The rules that are not entries, in the words of [Policy.Explain].
const (
	ruleUnknown   = "unknown operation"
	ruleFull      = "full access"
	ruleExternal  = "judged outside"
	ruleProcesses = "processes outside"
	ruleSockets   = "unix sockets"
	ruleAddress   = "unclear address"
	ruleLoopback  = "loopback"
	ruleUnclean   = "unclear path"
	ruleUnlisted  = "not listed"
)

// Explain returns the answer of [Policy.Rule] and what decides it, as a person
// writes it: an entry ("/=read", "/w/.git=read (protected)", "deny /w/**/.env"), the
// network ("network=none", "host example.com:443"), or a built-in rule ("unix
// sockets", "loopback", "processes outside", "not listed" where no entry speaks about
// a path). An entry that is not bound to a place yet has "(not bound)" after it. The
// words are never empty; they are for people and may change.
func (p Policy) Explain(a Access) (Ruling, string) {
	switch {
	case a.Op == OpUnknown || a.Op > Signal:
		return Deny, ruleUnknown
	case p.mode == Full:
		return Allow, ruleFull
	case a.Op == Connect || a.Op == Bind:
		return p.explainNet(a)
	case a.Op == Signal:
		if p.mode == External {
			return Allow, ruleExternal
		}
		return Deny, ruleProcesses
	}
	level, rule := p.explainFile(a.Path)
	return allowIf(level.allows(a.Op)), rule
}

// explainNet is Explain for Connect and Bind below full access.
func (p Policy) explainNet(a Access) (Ruling, string) {
	network := "network=" + p.net.String()
	if a.Net == "unix" {
		name := a.Addr
		if name == "" {
			name = a.Path
		}
		if !isClean(name) {
			return Deny, ruleSockets
		}
		level, rule := p.explainFile(name)
		return allowIf(level == LevelWrite), rule
	}
	if p.net == NetworkHost {
		return Allow, network
	}
	host, port, ok := splitAddr(a.Addr)
	switch {
	case !ok:
		return Deny, ruleAddress
	case isLocal(host):
		return Allow, ruleLoopback
	case a.Op == Bind || p.net != NetworkProxy:
		return Deny, network
	case slices.Contains(p.hosts, host):
		return Allow, "host " + host
	case hostGranted(p.hosts, host, port):
		return Allow, "host " + joinAddr(host, port)
	}
	return Ask, network
}

// explainFile is LevelAt with what decides it.
func (p Policy) explainFile(name string) (Level, string) {
	switch {
	case p.mode != Managed:
		return LevelWrite, ruleExternal
	case p.open:
		return LevelWrite, "/=write"
	case !isClean(name):
		return LevelDeny, ruleUnclean
	}
	c := p.compiled()
	for _, g := range c.globs {
		if g.MatchTree(name) {
			return LevelDeny, "deny " + g.pattern
		}
	}
	level, rule := c.explain(name, p.rooted())
	if c.limit >= level {
		return level, rule
	}
	// Whatever the entry is about, it narrows this path until it has a place.
	for _, e := range c.loose {
		if e.Level == c.limit || e.Check() != nil {
			return c.limit, e.String() + " (not bound)"
		}
	}
	return c.limit, ruleUnlisted
}

// rooted reports whether an entry is about "/".
func (p Policy) rooted() bool {
	return slices.ContainsFunc(p.list(), func(e Entry) bool {
		name, ok := e.Place.Absolute()
		return ok && name == "/" && e.Check() == nil
	})
}

// explain is level with what decides it.
func (c *compiled) explain(name string, rooted bool) (Level, string) {
	at, level := nearest(c.levels, name)
	if at == "" {
		if !rooted {
			return c.root, ruleUnlisted
		}
		return c.root, "/=" + c.root.String()
	}
	rule := at + "=" + level.String()
	i, found := slices.BinarySearchFunc(c.rules, at, func(r PathRule, name string) int { return strings.Compare(r.Path, name) })
	if found && c.rules[i].Auto {
		rule += " (protected)"
	}
	return level, rule
}

// ParseGrants reads grants as [Grant.String] writes them, several with spaces
// between. It reports false for anything else, an empty text included: what is read
// opens exactly what the text says.
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

// splitWords is the inverse of quote for several words.
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
