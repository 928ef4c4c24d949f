// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"net/netip"
	"syscall"
	"testing"
)

// TestUnreachable: a network with nothing but loopback refuses what asks a name server of this
// machine, so that no program waits for an answer.
func TestUnreachable(t *testing.T) {
	for to, want := range map[string]syscall.Errno{
		"127.0.0.1:53":          syscall.ECONNREFUSED,
		"127.0.0.53:53":         syscall.ECONNREFUSED,
		"[::1]:53":              syscall.ECONNREFUSED,
		"0.0.0.0:53":            syscall.ECONNREFUSED,
		"127.0.0.1:54":          0,
		"[::1]:80":              0,
		"10.0.0.1:53":           syscall.ENETUNREACH,
		"[2001:db8::1]:443":     syscall.ENETUNREACH,
		"[fe80::1]:80":          0, // invalid
		"[fe80::1%eth0]:80":     syscall.ENETUNREACH,
		"255.255.255.255:12345": syscall.ENETUNREACH,
	} {
		if got := Unreachable(netip.MustParseAddrPort(to)); got != want {
			t.Errorf("%s: %v, want %v", to, got, want)
		}
	}
}
