// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net/netip"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// NameServer returns the address at which programs of this machine ask for names: the first of
// /etc/resolv.conf, as resolv.conf(5) describes it, and 127.0.0.1 without one. It is false where that
// is an address with a zone, or not one.
func NameServer() (netip.AddrPort, bool) {
	text, _ := safefile.ReadSystem("/etc/resolv.conf") // empty after an error
	return nameServer(string(text))
}

func nameServer(text string) (netip.AddrPort, bool) {
	const port = 53
	addr := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "nameserver" {
			var err error
			if addr, err = netip.ParseAddr(words[1]); err != nil {
				return netip.AddrPort{}, false
			}
			break
		}
	}
	addr = addr.Unmap()
	return netip.AddrPortFrom(addr, port), addr.Zone() == "" && !addr.IsUnspecified() && !addr.IsMulticast()
}
