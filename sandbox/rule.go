// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The rules that are not entries and decide in several places; see [Policy.Explain].
const (
	ruleExternal    = "judged outside"
	ruleUnlisted    = "not listed"
	ruleUnixSockets = "unix sockets"
)

// LevelAt returns the level that the file part of the policy gives to a path. A path that
// is not absolute and clean has LevelDeny, except where no file is restricted. While an
// entry that narrows is not bound to a place, no path has more than that entry's level.
func (p Policy) LevelAt(name string) Level {
	level, _, _ := p.level(name)
	return level
}

// Rule returns the ruling on one access.
//
// Files (Read, Exec, Write): the most specific entry at or above the path counts, and of
// two for the same path the stricter one. Protected names at the top of a writable root
// are read-only unless an entry for that very path says otherwise. A deny glob counts
// against every entry. Exec follows Read. A path that is not absolute and clean is denied.
// The ruling is never Ask.
//
// Network (Connect, Bind): with NetworkHost everything is allowed. Otherwise the network is
// private: loopback (127.0.0.0/8, ::1, localhost) is allowed, and so is the unspecified
// address, which means loopback there. Bind to another address is denied. Connect is denied
// with NetworkNone; with NetworkProxy it is allowed to granted hosts, and Ask for others.
//
// A unix socket needs a path that may be written, as the kernel requires for a file; whether
// the command itself listens there, which a sandbox may ask for, no policy knows. Abstract
// ones are denied: on the host's network they lead to programs outside.
//
// Signal and unknown operations are denied, because processes outside are not visible.
// Syscall is: no policy opens a call that the filter refuses.
//
// With mode Full every known operation is allowed. With External every one is that is not
// about the network, because the caller judges it.
func (p Policy) Rule(a Access) Ruling {
	r, _ := p.Explain(a)
	return r
}

// Explain returns the ruling of [Policy.Rule] and the rule that decides it: an entry
// ("/=read", "/w/.git=read (protected)", "deny /w/**/.env"), the network ("network=none",
// "host example.com:443"), or a built-in rule ("unix sockets", "loopback", "processes
// outside", "system call filter", "not listed" where no entry is about a path). "(not bound)"
// follows an entry that is not bound to a place. The rule is never empty; it is for people and
// may change.
func (p Policy) Explain(a Access) (Ruling, string) {
	switch {
	case a.Op == OpUnknown || a.Op > Syscall:
		return Deny, "unknown operation"
	case p.mode == Full:
		return Allow, "full access"
	case a.Op == Connect || a.Op == Bind:
		return p.explainNet(a)
	case (a.Op == Signal || a.Op == Syscall) && p.mode == External:
		return Allow, ruleExternal
	case a.Op == Signal:
		return Deny, "processes outside"
	case a.Op == Syscall:
		return Deny, "system call filter"
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
			return Deny, ruleUnixSockets
		}
		level, rule := p.explainFile(name)
		if a.Op == Connect && level == LevelRead {
			rule = ruleUnixSockets // to make it writable would not be enough
		}
		return allowIf(level == LevelWrite), rule
	}
	if p.net == NetworkHost {
		return Allow, network
	}
	host, port, ok := splitAddr(a.Addr)
	switch {
	case !ok:
		return Deny, "unclear address"
	case isLocal(host):
		return Allow, "loopback"
	case a.Op == Bind || p.net != NetworkProxy:
		return Deny, network
	case slices.Contains(p.hosts, host):
		return Allow, "host " + host
	case hostGranted(p.hosts, host, port):
		return Allow, "host " + joinAddr(host, port)
	}
	return Ask, network
}

// explainFile returns the level of a path and the rule that decides it.
func (p Policy) explainFile(name string) (Level, string) {
	level, at, rule := p.level(name)
	if rule != "" {
		return level, rule
	}
	rule = at + "=" + level.String()
	rules := p.compiled().rules
	i, found := slices.BinarySearchFunc(rules, at,
		func(r PathRule, name string) int { return strings.Compare(r.Path, name) })
	if found && rules[i].Auto {
		rule += " (protected)"
	}
	return level, rule
}

// level returns the level of a path and what decides it: the entry at a path, or else a
// rule.
func (p Policy) level(name string) (level Level, at, rule string) {
	switch {
	case p.mode != Managed:
		return LevelWrite, "", ruleExternal
	case p.open:
		return LevelWrite, "/", ""
	case !isClean(name):
		return LevelDeny, "", "unclear path"
	}
	c := p.compiled()
	for _, g := range c.globs {
		if g.MatchTree(name) {
			return LevelDeny, "", "deny " + g.pattern
		}
	}
	at, level = nearest(c.levels, name)
	if at == "" {
		level = c.root
		if c.rooted {
			at = "/"
		} else {
			rule = ruleUnlisted
		}
	}
	if level <= c.limit {
		return level, at, rule
	}
	// An entry that narrows applies to every path as long as it is not bound.
	for _, e := range c.loose {
		if e.Level == c.limit || e.Check() != nil {
			return c.limit, "", e.String() + " (not bound)"
		}
	}
	return c.limit, "", ruleUnlisted
}

func allowIf(ok bool) Ruling {
	if ok {
		return Allow
	}
	return Deny
}

// isClean returns whether name is an absolute clean path.
func isClean(name string) bool {
	return path.IsAbs(name) && path.Clean(name) == name && !strings.ContainsRune(name, 0)
}

// splitAddr splits "host:port", "[v6]:port", "host" or "v6" and brings the host into one
// form: lower case, no final dot, addresses as netip writes them and IPv4 inside IPv6 as
// IPv4. Port is "" when there is none.
func splitAddr(addr string) (host, port string, ok bool) {
	host = addr
	if rest, found := strings.CutPrefix(addr, "["); found {
		host, rest, found = strings.Cut(rest, "]")
		if !found || !strings.Contains(host, ":") {
			return "", "", false
		}
		if rest != "" {
			if port, found = strings.CutPrefix(rest, ":"); !found || port == "" {
				return "", "", false
			}
		}
	} else if strings.Count(addr, ":") == 1 {
		host, port, _ = strings.Cut(addr, ":")
		if port == "" {
			return "", "", false
		}
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return "", "", false
		}
		port = strconv.FormatUint(n, 10)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String(), port, true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || strings.ContainsAny(host, ":/[]@ \t\r\n\x00") {
		return "", "", false
	}
	return host, port, true
}

// joinAddr is the inverse of splitAddr.
func joinAddr(host, port string) string {
	if port == "" {
		return host
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// isLocal returns whether a host of splitAddr is this machine. So is the unspecified
// address: in a private network it can only mean loopback, for Bind and, on Linux, for
// Connect.
func isLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// hostGranted returns whether the list contains the host with this port or without one. An
// empty port asks for every port.
func hostGranted(hosts []string, host, port string) bool {
	return slices.Contains(hosts, host) || port != "" && slices.Contains(hosts, joinAddr(host, port))
}
