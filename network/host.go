// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Host is a normalized host: a name in lower case without a dot at its end, or an address. Two
// spellings of one host give equal values, which == compares. The zero Host is none: every
// policy refuses it.
type Host struct {
	name string
	addr netip.Addr
}

// AddrHost returns the host of an address. An address that is not valid or has a zone gives the
// zero Host. An IPv4 address that is written as an IPv6 one becomes IPv4.
func AddrHost(addr netip.Addr) Host {
	if !addr.IsValid() || addr.Zone() != "" {
		return Host{}
	}
	return Host{addr: addr.Unmap()}
}

// String returns the name, or the address without brackets. [net.JoinHostPort] adds them. It is
// empty for the zero Host.
func (h Host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

// Addr returns the address, and false for a name.
func (h Host) Addr() (netip.Addr, bool) { return h.addr, h.addr.IsValid() }

// Name returns the name; empty for an address.
func (h Host) Name() string { return h.name }

// IsLocal reports whether the host is a name that means this machine: localhost and all below
// it, localhost.localdomain, ip6-localhost. These are never sent to a resolver; see
// [Host.LocalAddrs].
func (h Host) IsLocal() bool {
	return h.underLocalhost() || h.name == "localhost.localdomain" || h.name == "ip6-localhost"
}

// LocalAddrs returns 127.0.0.1 and ::1 for a name for which IsLocal is true, and nil for all
// others. They take the place of what a resolver would say.
func (h Host) LocalAddrs() []netip.Addr {
	if !h.IsLocal() {
		return nil
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

func (h Host) underLocalhost() bool {
	return h.name == "localhost" || strings.HasSuffix(h.name, ".localhost")
}

// HostError reports a host, or a host and port, that is refused as malformed.
type HostError struct {
	Host   string // as it arrived
	Reason string // why, with the fix where there is one
}

// Error returns a text with the host quoted; of a long one it quotes the beginning.
func (e *HostError) Error() string {
	host, more := e.Host, ""
	if len(host) > maxName {
		host, more = host[:maxName], "..."
	}
	return fmt.Sprintf("invalid host %s%s: %s", strconv.QuoteToASCII(host), more, e.Reason)
}

const (
	maxName  = 253 // bytes of a name without the dot at its end
	maxLabel = 63
)

// ParseHost normalizes a host as it arrived: a name, an IPv4 address in any form that
// inet_aton(3) reads, or an IPv6 address in brackets. The error is a [*HostError].
//
// Letters become lower case and one dot at the end is removed. A name whose last label is a
// number is that IPv4 address or refused, so 127.1, 2130706433 and 0x7f.1 are 127.0.0.1. IPv4
// addresses that are written as IPv6 ones become IPv4. Nothing else is changed or decoded:
// bytes that are not ASCII, percent signs, zones, wildcards and empty labels are refused.
func ParseHost(raw string) (Host, error) {
	h, reason := parseHost(raw)
	if reason != "" {
		return Host{}, &HostError{Host: raw, Reason: reason}
	}
	return h, nil
}

// ParseAuthority reads "host", "host:port" or "[address]:port". A default port that is not 0
// takes the place of a port that is missing or empty; with 0 a port is needed. The error is a
// [*HostError] with the whole text.
func ParseAuthority(raw string, defaultPort uint16) (Host, uint16, error) {
	text, port, hasPort, reason := splitPort(raw)
	if reason != "" {
		return Host{}, 0, &HostError{Host: raw, Reason: reason}
	}
	h, reason := parseHost(text)
	if reason != "" {
		return Host{}, 0, &HostError{Host: raw, Reason: reason}
	}
	number := defaultPort
	switch {
	case hasPort && port != "":
		var ok bool
		if number, ok = parsePort(port); !ok {
			return Host{}, 0, &HostError{Host: raw, Reason: "a port is a number from 1 to 65535"}
		}
	case defaultPort == 0:
		return Host{}, 0, &HostError{Host: raw, Reason: "the port is missing; write HOST:PORT"}
	}
	return h, number, nil
}

// splitPort cuts the text after the colon behind a host. The reason is empty or says what is
// wrong.
func splitPort(raw string) (host, port string, hasPort bool, reason string) {
	if strings.HasPrefix(raw, "[") {
		end := strings.IndexByte(raw, ']')
		if end < 0 {
			return "", "", false, `"]" is missing`
		}
		host, rest := raw[:end+1], raw[end+1:]
		if rest == "" {
			return host, "", false, ""
		}
		if rest[0] != ':' {
			return "", "", false, `only ":PORT" may follow "]"`
		}
		return host, rest[1:], true, ""
	}
	host, port, hasPort = strings.Cut(raw, ":")
	if strings.Contains(port, ":") {
		return "", "", false, "an IPv6 address is written in brackets"
	}
	return host, port, hasPort, ""
}

// parsePort reads a port: 1 to 65535, digits only.
func parsePort(text string) (uint16, bool) {
	if len(text) > 5 {
		return 0, false
	}
	n := 0
	for i := range len(text) {
		if !isDigit(text[i]) {
			return 0, false
		}
		n = n*10 + int(text[i]-'0')
	}
	if n < 1 || n > 65535 {
		return 0, false
	}
	return uint16(n), true
}

// parseHost is ParseHost. The reason is empty or says what is wrong.
func parseHost(raw string) (h Host, reason string) {
	if raw == "" {
		return Host{}, "it is empty"
	}
	if raw[0] == '[' {
		return parseBracketed(raw)
	}
	// Longer ones are refused before they are looked at.
	if len(raw) > maxName+1 || len(raw) > maxName && raw[len(raw)-1] != '.' {
		return Host{}, "it is longer than 253 bytes"
	}
	name, reason := parseName(raw)
	if reason != "" {
		return Host{}, reason
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if !isNumber(last) {
		return Host{name: name}, ""
	}
	addr, ok := parseIPv4(name)
	if !ok {
		return Host{}, "it ends in a number and is not an IPv4 address"
	}
	return Host{addr: addr}, ""
}

// parseBracketed reads an IPv6 address in brackets.
func parseBracketed(raw string) (Host, string) {
	inner, closed := strings.CutSuffix(raw[1:], "]")
	if !closed {
		return Host{}, `"]" is missing`
	}
	if strings.Contains(inner, "%") {
		return Host{}, "an address with a zone is not supported"
	}
	addr, err := netip.ParseAddr(inner)
	if err != nil || !addr.Is6() {
		return Host{}, "only an IPv6 address may stand in brackets"
	}
	return AddrHost(addr), ""
}

// parseName returns a name in lower case without one dot at its end. Each label must be one to
// 63 letters, digits, hyphens and underscores.
func parseName(raw string) (name, reason string) {
	raw = strings.TrimSuffix(raw, ".")
	start, upper := 0, false
	for i := 0; i <= len(raw); i++ {
		if i < len(raw) && raw[i] != '.' {
			c := raw[i]
			upper = upper || 'A' <= c && c <= 'Z'
			if !isLetter(c) && !isDigit(c) && c != '-' && c != '_' {
				return "", unfit(c)
			}
			continue
		}
		switch {
		case i == start:
			return "", "a label is empty"
		case i-start > maxLabel:
			return "", "a label is longer than 63 bytes"
		}
		start = i + 1
	}
	if upper {
		raw = strings.ToLower(raw)
	}
	return raw, ""
}

// unfit says what is wrong with a byte of a name.
func unfit(c byte) string {
	switch {
	case c == ':':
		return "an IPv6 address is written in brackets"
	case c >= 0x80:
		return "only ASCII is allowed; write an international name as xn--"
	}
	return "it contains " + strconv.QuoteToASCII(string(rune(c)))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isNumber reports whether a label makes the host an IPv4 address: digits only, or "0x".
func isNumber(label string) bool {
	if strings.HasPrefix(label, "0x") {
		return true
	}
	for i := range len(label) {
		if !isDigit(label[i]) {
			return false
		}
	}
	return true
}

// parseIPv4 reads an IPv4 address as inet_aton(3) does: one to four parts, each decimal, octal
// after "0" or hexadecimal after "0x". The last part fills the bytes that are left.
func parseIPv4(name string) (netip.Addr, bool) {
	parts := strings.Split(name, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint32
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		n, ok := parseNumber(part, bits)
		if !ok {
			return netip.Addr{}, false
		}
		if i < len(parts)-1 {
			n <<= 24 - 8*i
		}
		value |= n
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], value)
	return netip.AddrFrom4(b), true
}

// parseNumber reads one part of an IPv4 address.
func parseNumber(text string, bits int) (uint32, bool) {
	base := 10
	switch {
	case strings.HasPrefix(text, "0x"):
		text, base = text[2:], 16
	case len(text) > 1 && text[0] == '0':
		text, base = text[1:], 8
	}
	if base != 16 && !isNumber(text) {
		return 0, false
	}
	n, err := strconv.ParseUint(text, base, bits)
	return uint32(n), err == nil
}
