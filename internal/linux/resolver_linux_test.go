// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"net/netip"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestOwnNameServer: a command that does not see resolv.conf asks for names on its loopback interface.
func TestOwnNameServer(t *testing.T) {
	t.Parallel()
	host, own := netip.MustParseAddrPort("192.0.2.53:53"), netip.MustParseAddrPort("127.0.0.1:53")
	file := plan.Spot{Path: hostfacts.RealPath("/etc/resolv.conf")}
	config := plan.Rule{Spot: file, Level: sandbox.LevelDeny}
	seen := host
	if (&plan.Request{Root: sandbox.LevelRead}).Hides(config.Path) {
		seen = own // it leads to a directory of which each command has its own
	}
	for _, test := range []struct {
		name string
		r    plan.Request
		want netip.AddrPort
	}{
		{"it is there", plan.Request{Root: sandbox.LevelRead}, seen},
		{"it is denied", plan.Request{Root: sandbox.LevelRead, Rules: []plan.Rule{config}}, own},
		{"nothing is seen", plan.Request{Root: sandbox.LevelDeny}, own},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := &attempt{server: host}
			test.r.Names = &plan.Names{Server: host, Route: []byte{1}}
			a.ownNameServer(&test.r)
			n := test.r.Names
			if a.server != test.want || n.Server != test.want || (n.Route == nil) != (test.want == own) {
				t.Errorf("%v, %+v, want %v", a.server, n, test.want)
			}
		})
	}
}
