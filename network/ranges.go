// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// protected are the ranges that no public service has: a host in them is on this machine, in its
// local network, or nowhere.
var protected = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
	"192.88.99.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001:2::/48", "2001:10::/28",
	"2001:20::/28",
	"2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

// metadata are addresses at which a platform tells a machine about itself, often with
// credentials. [Config.AllowPrivate] does not open them.
var metadata = prefixes(
	"169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
	"fe80::/10", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128", "fd00:42::42/128",
	"fd00:a9fe:a9fe::1/128", "fd00:100::100:200/128",
)

// A carrier is a range of IPv6 whose addresses lead to an IPv4 address.
type carrier struct {
	prefix netip.Prefix
	at     [4]int // its bytes
	hidden bool   // its bits are inverted
}

// carriers are the IPv6 ranges whose addresses lead to an IPv4 address, and where it is.
var carriers = sync.OnceValue(func() []carrier {
	return []carrier{
		{netip.MustParsePrefix("::/96"), lastBytes, false},           // compatible
		{netip.MustParsePrefix("::ffff:0:0:0/96"), lastBytes, false}, // translated
		{netip.MustParsePrefix("64:ff9b::/96"), lastBytes, false},    // NAT64
		// NAT64 with a prefix of its own, of any length (RFC 8215); byte 8 is 0 (RFC 6052).
		{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{6, 7, 9, 10}, false},
		{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{7, 9, 10, 11}, false},
		{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{9, 10, 11, 12}, false},
		{netip.MustParsePrefix("64:ff9b:1::/48"), lastBytes, false},
		{netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}, false}, // 6to4
		{netip.MustParsePrefix("2001::/32"), [4]int{4, 5, 6, 7}, false}, // the server of Teredo
		{netip.MustParsePrefix("2001::/32"), lastBytes, true},           // its client
	}
})

var lastBytes = [4]int{12, 13, 14, 15}

// isISATAP reports whether the last half of an address is that of an IPv4 address behind any prefix (RFC
// 5214).
func isISATAP(b *[16]byte) bool {
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// prefixes returns a function that reads ranges at its first call.
func prefixes(texts ...string) func() []netip.Prefix {
	return sync.OnceValue(func() []netip.Prefix {
		list := make([]netip.Prefix, len(texts))
		for i, text := range texts {
			list[i] = netip.MustParsePrefix(text)
		}
		return list
	})
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
	case within(metadata(), addr):
		return guardMetadata
	case within(protected(), addr):
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
	for _, q := range protected() {
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
		pick := func(at [4]int) (v4 [4]byte) {
			for i, n := range at {
				v4[i] = bytes[n]
			}
			return v4
		}
		if isISATAP(&bytes) && !yield(netip.AddrFrom4(pick(lastBytes))) {
			return
		}
		for _, c := range carriers() {
			if !c.prefix.Contains(addr) {
				continue
			}
			v4 := pick(c.at)
			if c.hidden {
				binary.BigEndian.PutUint32(v4[:], ^binary.BigEndian.Uint32(v4[:]))
			}
			if !yield(netip.AddrFrom4(v4)) {
				return
			}
		}
	}
}
