// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"net/netip"
)

// protected are the ranges that no public service has: a host in them is on this machine, in its
// local network, or nowhere.
var protected = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "2001:db8::/32", "fc00::/7", "fe80::/10",
	"fec0::/10", "ff00::/8",
)

// metadata are addresses at which a platform tells a machine about itself, often with
// credentials. [Config.AllowPrivate] does not open them.
var metadata = prefixes(
	"169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
	"fe80::/10", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128", "fd00:42::42/128",
	"fd00:a9fe:a9fe::1/128", "fd00:100::100:200/128",
)

// carriers are the IPv6 ranges whose addresses lead to an IPv4 address, and where it is.
var carriers = []struct {
	prefix netip.Prefix
	at     int  // the byte at which it begins
	hidden bool // its bits are inverted
}{
	{netip.MustParsePrefix("::/96"), 12, false},           // compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, false}, // translated
	{netip.MustParsePrefix("64:ff9b::/96"), 12, false},    // NAT64
	{netip.MustParsePrefix("2002::/16"), 2, false},        // 6to4
	{netip.MustParsePrefix("2001::/32"), 4, false},        // the server of Teredo
	{netip.MustParsePrefix("2001::/32"), 12, true},        // its client
}

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// A guard says what it takes to reach an address. Greater is harder.
type guard uint8

const (
	guardNone     guard = iota
	guardPrivate        // an entry for the address or for a range of its kind, or AllowPrivate
	guardMetadata       // an entry for the address
)

// guardOf returns the guard of an address and of the IPv4 addresses that it carries.
func guardOf(addr netip.Addr) guard {
	g := rangeGuard(addr)
	for carried := range carriedBy(addr) {
		g = max(g, rangeGuard(carried))
	}
	return g
}

func rangeGuard(addr netip.Addr) guard {
	switch {
	case within(metadata, addr):
		return guardMetadata
	case within(protected, addr):
		return guardPrivate
	}
	return guardNone
}

func within(ranges []netip.Prefix, addr netip.Addr) bool {
	for _, p := range ranges {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// isProtectedRange reports whether a range lies in one of those that are protected, so that who
// names it knows what it opens. "0.0.0.0/0" does not.
func isProtectedRange(p netip.Prefix) bool {
	for _, q := range protected {
		if q.Bits() <= p.Bits() && q.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

// carriedBy yields the IPv4 addresses that an IPv6 address leads to.
func carriedBy(addr netip.Addr) func(yield func(netip.Addr) bool) {
	return func(yield func(netip.Addr) bool) {
		if !addr.Is6() {
			return
		}
		bytes := addr.As16()
		for _, c := range carriers {
			if !c.prefix.Contains(addr) {
				continue
			}
			v4 := [4]byte(bytes[c.at : c.at+4])
			if c.hidden {
				binary.BigEndian.PutUint32(v4[:], ^binary.BigEndian.Uint32(v4[:]))
			}
			if !yield(netip.AddrFrom4(v4)) {
				return
			}
		}
	}
}
