// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"fmt"
	"net/netip"

	"github.com/sallyport-dev/sallyport/network"
)

// A name is judged before it is resolved, and its addresses afterwards.
func ExamplePolicy() {
	policy, err := network.New(network.Config{
		Mode: network.Full,
		Entries: []network.Entry{
			{Pattern: "registry.example.org:443", Source: "--allow-host"},
			{Pattern: "evil.example.org", Deny: true},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, target := range []string{"Registry.Example.org.:443", "registry.example.org:22",
		"evil.example.org:443", "0x7f.1:443"} {
		host, port, err := network.ParseAuthority(target, 0)
		if err != nil {
			fmt.Println(err)
			continue
		}
		r := network.Request{Protocol: network.HTTPSConnect, Host: host, Port: port}
		d := policy.Decide(r)
		if d.Ruling == network.Allow { // now it may be resolved
			addrs := []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("93.184.216.34")}
			addrs, d = policy.Vet(r, addrs)
			fmt.Println(host, d.Ruling, addrs)
			continue
		}
		fmt.Println(host, d.Ruling, d.Reason)
	}
	// Output:
	// registry.example.org allow [93.184.216.34]
	// registry.example.org deny not_allowed
	// evil.example.org deny denied
	// 127.0.0.1 deny not_allowed_local
}
