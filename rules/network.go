// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"
	"unicode"
)

// A NetworkRule is a decision about a host. Network rules take no part in decisions about
// commands.
type NetworkRule struct {
	Pos
	Host          string // a name or an address, without port, in lower case
	Protocol      string // http, https, socks5_tcp or socks5_udp
	Decision      Decision
	Justification string // empty if the rule has none
}

// protocols maps the words of rule files to protocols.
var protocols = map[string]string{
	"http": "http", "https": "https", "https_connect": "https", "http-connect": "https",
	"socks5_tcp": "socks5_tcp", "socks5_udp": "socks5_udp",
}

// Networks returns the network rules in the order in which they were loaded.
func (s *Set) Networks() []NetworkRule {
	if s == nil {
		return nil
	}
	return slices.Clone(s.networks)
}

// Hosts returns the hosts that network rules allow and forbid: the last rule of a host that
// is no prompt counts, whatever its protocol. If a source did not load, no host is allowed.
func (s *Set) Hosts() (allowed, denied []string) {
	if s == nil {
		return nil, nil
	}
	for _, r := range s.networks {
		same := func(host string) bool { return host == r.Host }
		switch r.Decision {
		case Allow:
			denied = slices.DeleteFunc(denied, same)
			allowed = append(slices.DeleteFunc(allowed, same), r.Host)
		case Forbid:
			allowed = slices.DeleteFunc(allowed, same)
			denied = append(slices.DeleteFunc(denied, same), r.Host)
		}
	}
	if len(s.broken) > 0 {
		allowed = nil
	}
	return allowed, denied
}

// normalHost returns the host of a network rule as it is compared. An error is the text
// after "network_rule host ".
func normalHost(raw string) (host, problem string) {
	host = strings.TrimSpace(raw)
	switch {
	case host == "":
		return "", "cannot be empty"
	case strings.ContainsAny(host, "/?#"):
		return "", "must be a hostname or IP literal (without scheme or path)"
	}
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		address, rest, closed := strings.Cut(inner, "]")
		if !closed {
			return "", "has an invalid bracketed IPv6 literal"
		}
		if port, ok := strings.CutPrefix(rest, ":"); rest != "" && (!ok || !digits(port)) {
			return "", "contains an unsupported suffix: " + raw
		}
		host = address
	} else if name, port, ok := strings.Cut(host, ":"); ok && name != "" && digits(port) {
		host = name
	}
	host = strings.Map(asciiLower, strings.TrimRight(host, "."))
	switch {
	case host == "":
		return "", "cannot be empty"
	case strings.Contains(host, "*"):
		return "", "must be a specific host; wildcards are not allowed"
	case strings.ContainsFunc(host, unicode.IsSpace):
		return "", "cannot contain whitespace"
	}
	return host, ""
}

// digits reports whether s is a number.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// asciiLower maps a letter of ASCII to lower case and leaves others as they are.
func asciiLower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}
