// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// A pattern is what an entry matches. Exactly one of all, prefix and a name is given.
type pattern struct {
	all    bool         // "*"
	prefix netip.Prefix // an address or a range

	lead   lead
	labels []string // labels before suffix, the first of which has a "*" in it
	suffix string   // the labels behind the last "*"

	first, last uint16 // ports
}

// A lead says what may stand before the labels of a pattern.
type lead uint8

const (
	leadNone  lead = iota
	leadBelow      // "*.": one label or more
	leadApex       // "**.": any number of labels
)

// parsePattern reads the text of an entry. The reason is empty or says what is wrong.
func parsePattern(text string) (p pattern, reason string) {
	if strings.Contains(text, "://") {
		return pattern{}, "a pattern has no scheme and no path; write HOST or HOST:PORT"
	}
	host, ports, hasPorts, reason := splitPattern(text)
	if reason != "" {
		return pattern{}, reason
	}
	p.first, p.last = 1, 65535
	if hasPorts {
		var ok bool
		if p.first, p.last, ok = parsePorts(ports); !ok {
			return pattern{}, "a port is a number from 1 to 65535, or a range such as 8000-8999"
		}
	}
	switch {
	case host == "*":
		p.all = true
		return p, ""
	case strings.Contains(host, "/"):
		p.prefix, reason = parseRange(host)
		return p, reason
	case strings.Contains(host, "*"):
		return p, p.parseWildcards(host)
	}
	h, reason := parseLiteral(host)
	if addr, ok := h.Addr(); ok {
		p.prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	p.suffix = h.Name()
	return p, reason
}

// splitPattern cuts the ports from a pattern, which are behind a range: "[fd00::]/8:443".
func splitPattern(text string) (host, ports string, hasPorts bool, reason string) {
	if !strings.HasPrefix(text, "[") {
		return splitPort(text)
	}
	end := strings.IndexByte(text, ']')
	if end < 0 {
		return "", "", false, `"]" is missing`
	}
	rest, ports, hasPorts := strings.Cut(text[end+1:], ":")
	if rest != "" && rest[0] != '/' {
		return "", "", false, `only "/BITS" and ":PORT" may follow "]"`
	}
	return text[:end+1] + rest, ports, hasPorts, ""
}

// parsePorts reads "443" or "8000-8999".
func parsePorts(text string) (first, last uint16, ok bool) {
	from, to, isRange := strings.Cut(text, "-")
	first, ok = parsePort(from)
	if !isRange || !ok {
		return first, first, ok
	}
	last, ok = parsePort(to)
	return first, last, ok && first <= last
}

// parseLiteral reads a host of a pattern that has no wildcards. Labels may be international.
func parseLiteral(text string) (Host, string) {
	text, reason := toASCII(text)
	if reason != "" {
		return Host{}, reason
	}
	return parseHost(text)
}

// toASCII returns a name with international labels in the form that is sent, with "xn--".
func toASCII(text string) (ascii, reason string) {
	if isASCII(text) {
		return text, ""
	}
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(text, "."))
	if err != nil {
		return "", "it is not a valid international name"
	}
	if strings.Count(ascii, ".") != strings.Count(strings.TrimSuffix(text, "."), ".") {
		return "", `labels are separated by "."`
	}
	return ascii, ""
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// parseRange reads "10.1.0.0/16" or "[fd00::]/8". One of IPv4 addresses that are written as IPv6
// ones becomes IPv4, as such addresses do.
func parseRange(text string) (netip.Prefix, string) {
	const form = "a range is written 10.1.0.0/16 or [fd00::]/8"
	addr, bits, _ := strings.Cut(text, "/")
	if inner, ok := strings.CutPrefix(addr, "["); ok {
		addr, _ = strings.CutSuffix(inner, "]")
		if !strings.Contains(addr, ":") {
			return netip.Prefix{}, form
		}
	}
	p, err := netip.ParsePrefix(addr + "/" + bits)
	if err != nil {
		return netip.Prefix{}, form
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return netip.Prefix{}, "the range begins at " + p.Masked().Addr().String()
	}
	return p, ""
}

// parseWildcards reads a name with "*" in it.
func (p *pattern) parseWildcards(text string) (reason string) {
	rest := text
	if after, ok := strings.CutPrefix(text, "**."); ok {
		p.lead, rest = leadApex, after
	} else if after, ok := strings.CutPrefix(text, "*."); ok {
		p.lead, rest = leadBelow, after
	}
	if !strings.Contains(rest, "*") {
		h, reason := parseLiteral(rest)
		if h.addr.IsValid() {
			return "a wildcard cannot stand before an address; write a range such as 10.1.0.0/16"
		}
		p.suffix = h.name
		return reason
	}
	return p.parseInner(rest)
}

// parseInner reads labels with "*" in them.
func (p *pattern) parseInner(text string) (reason string) {
	switch {
	case strings.Contains(text, "**"):
		return `"**." may stand at the beginning only`
	case !isASCII(text):
		return `beside a "*" in a label, write international labels as xn--`
	case strings.Trim(text, "0123456789.*") == "":
		return "addresses have no wildcards; write a range such as 10.1.0.0/16"
	}
	// A letter in the place of each "*" leaves what must be a name.
	name, reason := parseName(strings.ReplaceAll(text, "*", "x"))
	if reason != "" {
		return reason
	}
	text = strings.ToLower(strings.TrimSuffix(text, "."))
	if last := name[strings.LastIndexByte(name, '.')+1:]; isNumber(last) {
		return "it ends in a number, and only addresses do"
	}
	end := strings.LastIndexByte(text, '*')
	head := text
	if dot := strings.IndexByte(text[end:], '.'); dot >= 0 {
		head, p.suffix = text[:end+dot], text[end+dot+1:]
	}
	p.labels = strings.Split(head, ".")
	return ""
}

// isWild reports whether the pattern matches names that it does not spell.
func (p *pattern) isWild() bool { return p.lead != leadNone || p.labels != nil }

// matchesHead reports whether the labels of a name before the suffix match.
func (p *pattern) matchesHead(head string) bool {
	for i := len(p.labels) - 1; i >= 0; i-- {
		if head == "" {
			return false
		}
		dot := strings.LastIndexByte(head, '.')
		if !matchesLabel(p.labels[i], head[dot+1:]) {
			return false
		}
		head = head[:max(dot, 0)]
	}
	switch p.lead {
	case leadApex:
		return true
	case leadBelow:
		return head != ""
	}
	return head == ""
}

// matchesLabel reports whether a label matches one in which "*" stands for any characters.
func matchesLabel(pattern, label string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for j < len(label) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && pattern[i] == label[j]:
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
