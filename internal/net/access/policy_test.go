// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net"
	"net/netip"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// managed returns a policy of a sandbox with granted hosts.
func managed(hosts ...string) sandbox.Policy {
	p := sandbox.ReadOnly().WithNetwork(sandbox.NetworkProxy)
	for _, h := range hosts {
		p = p.With(sandbox.Grant{Addr: h})
	}
	return p
}

// policyOf makes a network policy.
func policyOf(t testing.TB, mode network.Mode, entries ...network.Entry) *network.Policy {
	t.Helper()
	p, err := network.New(network.Config{Mode: mode, Entries: entries})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// decide asks a policy about CONNECT.
func decide(t testing.TB, p *network.Policy, authority string) network.Decision {
	t.Helper()
	host, port, err := network.ParseAuthority(authority, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p.Decide(network.Request{Protocol: network.HTTPSConnect, Host: host, Port: port})
}

// TestPolicy: what is granted is open beside what the network policy opens, and nothing else is.
func TestPolicy(t *testing.T) {
	allow, deny := network.Entry{Pattern: "allowed.example"},
		network.Entry{Pattern: "denied.example", Deny: true}
	for _, c := range []struct {
		name   string
		spec   *executor.Spec
		opens  []string
		closes []string
	}{
		{"nothing", &executor.Spec{Policy: managed()}, nil, []string{"granted.example:443", "localhost:80", "127.0.0.1:80"}},
		{
			"grants", &executor.Spec{Policy: managed("granted.example:443", "every.example",
				"[2001:4860::1]:443", "8.8.8.8")},
			[]string{"granted.example:443", "every.example:443", "every.example:80", "[2001:4860::1]:443",
				"8.8.8.8:53"},
			[]string{"granted.example:80", "x.granted.example:443", "[2001:4860::1]:80", "other.example:443"},
		},
		{
			"a network policy", &executor.Spec{Policy: managed(),
				Network: network.NewLive(policyOf(t, network.Full, allow, deny))},
			[]string{"allowed.example:1"}, []string{"granted.example:443", "denied.example:443"},
		},
		{
			"both", &executor.Spec{Policy: managed("granted.example:443", "denied.example:443"),
				Network: network.NewLive(policyOf(t, network.Full, allow, deny))},
			[]string{"allowed.example:1", "granted.example:443"},
			[]string{"denied.example:443", "other.example:443"},
		},
		{
			"a network policy that opens nothing", &executor.Spec{Policy: managed("granted.example:443"),
				Network: network.NewLive(policyOf(t, network.None))},
			nil, []string{"granted.example:443"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Policy(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range c.opens {
				if d := decide(t, p, at); d.Ruling != network.Allow {
					t.Errorf("%s: %+v, want it open", at, d)
				}
			}
			for _, at := range c.closes {
				if d := decide(t, p, at); d.Ruling == network.Allow {
					t.Errorf("%s: %+v, want it closed", at, d)
				}
			}
		})
	}
}

// TestIsHostAddr: loopback and the addresses of interfaces are this machine's, and others are not.
func TestIsHostAddr(t *testing.T) {
	want := map[string]bool{"127.0.0.1": true, "::1": true, "192.0.2.77": false, "2001:db8::77": false}
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if addr := netip.MustParsePrefix(a.String()).Addr(); !addr.IsLinkLocalUnicast() {
			want[addr.String()] = true
		}
	}
	for text, own := range want {
		if IsHostAddr(netip.MustParseAddr(text)) != own {
			t.Errorf("%s: %v", text, !own)
		}
	}
}
