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

// LevelAt returns the level that the file part of the policy gives to a path.
// A path that is not absolute and clean has LevelDeny, except where no file is
// restricted. While an entry that narrows is not bound to a place, no path has
// more than that entry's level.
func (p Policy) LevelAt(name string) Level {
	if p.mode != Managed || p.open {
		return LevelWrite
	}
	if !isClean(name) {
		return LevelDeny
	}
	c := p.compiled()
	for _, g := range c.globs {
		if g.MatchTree(name) {
			return LevelDeny
		}
	}
	return min(c.level(name), c.limit)
}

// Rule answers one access.
//
// Files (Read, Exec, Write): the most specific entry at or above the path
// holds, the stricter one of two for the same path. Protected names at the top
// of a writable root are read-only unless an entry for that very path says
// otherwise. Deny globs hold against every entry. Exec follows Read. A path that
// is not absolute and clean is refused. The answer is never Ask.
//
// Network (Connect, Bind): with NetworkHost everything is allowed. Otherwise
// the network is a private one, in which loopback (127.0.0.0/8, ::1, localhost)
// is usable, and the unspecified address too, which is loopback there. Bind to
// anything else is refused. Connect to anything else is refused with NetworkNone; with NetworkProxy it is
// allowed to granted hosts and has to be asked about for all others.
//
// A unix socket by path needs a path that may be written, as the kernel asks of a
// file too: it is one that the command made, or that somebody put where the command
// works. Abstract ones are refused: on the host's network they lead to programs
// outside that confine nobody, and in a private one nobody asks.
//
// Signal and unknown operations are refused: processes outside cannot be seen.
//
// With mode Full every known operation is allowed; with External every one
// that is not about the network, because the caller judges it.
func (p Policy) Rule(a Access) Ruling {
	switch {
	case a.Op == OpUnknown || a.Op > Signal:
		return Deny
	case p.mode == Full:
		return Allow
	case a.Op == Connect || a.Op == Bind:
		return p.ruleNet(a)
	case a.Op == Signal:
		return allowIf(p.mode == External)
	}
	return allowIf(p.LevelAt(a.Path).allows(a.Op))
}

// ruleNet is Rule for Connect and Bind below full access.
func (p Policy) ruleNet(a Access) Ruling {
	if a.Net == "unix" {
		name := a.Addr
		if name == "" {
			name = a.Path
		}
		return allowIf(isClean(name) && p.LevelAt(name) == LevelWrite)
	}
	if p.net == NetworkHost {
		return Allow
	}
	host, port, ok := splitAddr(a.Addr)
	switch {
	case !ok:
		return Deny
	case isLocal(host):
		return Allow
	case a.Op == Bind || p.net != NetworkProxy:
		return Deny
	case hostGranted(p.hosts, host, port):
		return Allow
	}
	return Ask
}

func allowIf(ok bool) Ruling {
	if ok {
		return Allow
	}
	return Deny
}

// isClean reports whether name is an absolute clean path.
func isClean(name string) bool {
	return path.IsAbs(name) && path.Clean(name) == name && !strings.ContainsRune(name, 0)
}

// splitAddr takes "host:port", "[v6]:port", "host" or "v6" apart and brings
// the host into one form: lower case, no final dot, addresses as netip writes
// them and IPv4 inside IPv6 as IPv4. Port is "" when there is none.
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

// isLocal reports whether a host of splitAddr is this machine itself. The
// unspecified address is too: in a private network it can only mean loopback,
// for Bind and, on Linux, for Connect.
func isLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// hostGranted reports whether the list holds the host with this port or with
// every port. An empty port asks for every port.
func hostGranted(hosts []string, host, port string) bool {
	return slices.Contains(hosts, host) || port != "" && slices.Contains(hosts, joinAddr(host, port))
}
