// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

// TestListening looks at lists as the kernel prints them.
func TestListening(t *testing.T) {
	t.Parallel()
	const head = "  sl  local_address rem_address   st tx_queue rx_queue\n"
	for _, test := range []struct {
		name, line string
		want       bool
	}{
		{"loopback", "   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 7 1", true},
		{"every address", "  12: 00000000:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 7 1", true},
		{"loopback of IPv6", "   0: 00000000000000000000000001000000:1538 0:0 0A 00000000:00000000 00:00000000 00000000 0 0 7 1", true},
		{"every address of IPv6", "   0: 00000000000000000000000000000000:1538 0:0 0A 00000000:00000000 00:00000000 00000000 0 0 7 1", true},
		{"an IPv4 address of IPv6", "   0: 0000000000000000FFFF00000100007F:1538 0:0 0A 00000000:00000000 00:00000000 00000000 0 0 7 1", true},
		{"another address", "   0: 0500A8C0:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 7 1", false},
		{"another port", "   0: 0100007F:1539 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 7 1", false},
		{"a connection", "   0: 0100007F:1538 0100007F:C001 01 00000000:00000000 00:00000000 00000000 0 0 7 1", false},
		{"a connection from there", "   0: 0100007F:C001 0100007F:1538 01 00000000:00000000 00:00000000 00000000 0 0 7 1", false},
		{"a short line", "   0: 0100007F:1538", false},
		{"none", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := listensAt(strings.NewReader(head+test.line+"\n"), 5432); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if port := netip.MustParseAddrPort(l.Addr().String()).Port(); !Listening(port) || Listening(0) {
		t.Errorf("port %d", port)
	}
}
