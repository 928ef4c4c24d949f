// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// policyOf returns a policy in the mode full. A pattern that begins with "!" denies.
func policyOf(t testing.TB, patterns ...string) *network.Policy {
	t.Helper()
	return newPolicy(t, network.Config{Mode: network.Full}, patterns...)
}

func newPolicy(t testing.TB, c network.Config, patterns ...string) *network.Policy {
	t.Helper()
	c.PublicSuffix = isTLD
	for _, text := range patterns {
		pattern, deny := strings.CutPrefix(text, "!")
		c.Entries = append(c.Entries, network.Entry{Pattern: pattern, Deny: deny})
	}
	p, err := network.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// requestTo returns a request in HTTP.
func requestTo(t interface{ Fatal(...any) }, authority string) network.Request {
	h, port, err := network.ParseAuthority(authority, 80)
	if err != nil {
		t.Fatal(err)
	}
	return network.Request{Host: h, Port: port, Method: "GET"}
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct{ name, pattern, matches, others string }{
		{"a name", "example.com", "example.com EXAMPLE.com.:8080", "a.example.com com notexample.com"},
		{"below a name", "*.example.com", "a.example.com a.b.example.com", "example.com aexample.com"},
		{"a name and below", "**.example.com", "example.com a.b.example.com", "aexample.com com"},
		{"inside a label", "api-*.example.com", "api-.example.com api-x.example.com", "api.example.com api-x.y.example.com x.api-x.example.com"},
		{"twice inside a label", "a*b*c.example.com", "abc.example.com axbybzc.example.com abbcc.example.com", "ab.example.com acb.example.com"},
		{"a whole label", "api.*.example.com", "api.eu.example.com", "api.example.com api.a.b.example.com"},
		{"below inner ones", "*.v*.example.com", "a.v1.example.com a.b.v.example.com", "v1.example.com a.x.example.com"},
		{"inner ones and below", "**.v*.example.com", "v1.example.com a.v1.example.com", "x.example.com a.x.example.com"},
		{"every name", "*", "example.com a.b.c", "localhost a.localhost 93.184.216.34 [2606:2800:220:1::34]"},
		{"every name on a port", "*:443", "example.com:443", "example.com:80"},
		{"an address", "93.184.216.34", "93.184.216.34 1572395042 [::ffff:93.184.216.34]", "93.184.216.35"},
		{"an IPv6 address", "[2606:2800:220:1::34]", "[2606:2800:220:1:0::34]", "[2606:2800:220:1::35]"},
		{"an address in another spelling", "127.1", "127.0.0.1 2130706433", "127.0.0.2"},
		{"a range", "93.184.0.0/16", "93.184.0.0 93.184.255.255", "93.185.0.0"},
		{"an IPv6 range", "[2606:2800::]/32", "[2606:2800::1]", "[2606:2801::1]"},
		{"a mapped range", "[::ffff:93.184.0.0]/112", "93.184.216.34", "93.185.0.0"},
		{"every address", "0.0.0.0/0", "93.184.216.34", "[2606:2800::1] example.com"},
		{"a port", "example.com:443", "example.com:443", "example.com:80 example.com:4430"},
		{"ports", "example.com:8000-8999", "example.com:8000 example.com:8999", "example.com:7999 example.com:9000"},
		{"a port of a range", "[2606:2800::]/32:443", "[2606:2800::1]:443", "[2606:2800::1]:80"},
		{"capitals and a dot", "*.Example.COM.", "a.example.com", "a.example.net"},
		{"a U-label", "bücher.example", "xn--bcher-kva.example", "bucher.example"},
		{"capital U-labels", "*.BÜCHER.example.", "a.xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"localhost", "localhost", "localhost LOCALHOST.", "a.localhost 127.0.0.1 localhost.localdomain"},
		{"below localhost", "*.localhost", "a.localhost", "localhost"},
		{"an inner pattern and local names", "a*.localhost", "", "a.localhost abc.localhost"},
		{"a suffix and local names", "*.localdomain", "a.localdomain", "localhost.localdomain"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policyOf(t, tt.pattern)
			for _, host := range strings.Fields(tt.matches) {
				if d := p.Decide(requestTo(t, host)); d.Ruling != network.Allow || d.Entry == nil ||
					d.Entry.Pattern != tt.pattern {
					t.Errorf("%s: %v %s", host, d.Ruling, d.Reason)
				}
			}
			for _, host := range strings.Fields(tt.others) {
				if d := p.Decide(requestTo(t, host)); d.Ruling != network.Deny {
					t.Errorf("%s: %v %s", host, d.Ruling, d.Reason)
				}
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct{ pattern, reason string }{
		{"", "empty"},
		{"**", "at the beginning"},
		{"a.**.example.com", "at the beginning"},
		{"a**.example.com", "at the beginning"},
		{"*.", "empty"},
		{"*..com", "empty"},
		{"a*..com", "label is empty"},
		{"http://example.com", "no scheme"},
		{"example.com/path", "a range is written"},
		{"example.com:", "a port"},
		{"example.com:0", "a port"},
		{"example.com:65536", "a port"},
		{"example.com:90-80", "a port"},
		{"example.com:80-", "a port"},
		{"2001:db8::7", "brackets"},
		{"fd00::/8", "brackets"},
		{"[2001:db8::7", `"]" is missing`},
		{"[2001:db8::7]x", "may follow"},
		{"[10.1.0.0]/16", "a range is written"},
		{"[fe80::%eth0]/10", "a range is written"},
		{"10.1.0.0/33", "a range is written"},
		{"10.1.0.0/", "a range is written"},
		{"10.1.2.3/16", "begins at 10.1.0.0"},
		{"*.10.1.2.3", "address"},
		{"*.7", "address"},
		{"10.0.*", "addresses have no wildcards"},
		{"a*.7", "ends in a number"},
		{"a?.example.com", `contains "?"`},
		{"{a,b}.example.com", `contains "{"`},
		{"a*b c.example.com", `contains " "`},
		{"bücher*.example", "xn--"},
		{"xn--\u00fc.example", "international"},
		{"a\u3002example", "separated"},
		{"*.com", `below "com"`},
		{"**.co.uk", `below "co.uk"`},
		{"a*.com", `below "com"`},
		{"a.*.com", `below "com"`},
		{"db*", "all owners"},
	} {
		t.Run(tt.pattern, func(t *testing.T) {
			e := network.Entry{Pattern: tt.pattern, Source: "here"}
			p, err := network.New(network.Config{Mode: network.Full, PublicSuffix: isTLD,
				Entries: []network.Entry{{Pattern: "a.b"}, e}})
			bad := new(network.EntryError)
			if p != nil || !errors.As(err, &bad) || bad.Entry.Pattern != tt.pattern ||
				!strings.Contains(bad.Reason, tt.reason) || !strings.HasPrefix(err.Error(), "here: ") {
				t.Errorf("New: %v, %v, want an error with %q", p, err, tt.reason)
			}
		})
	}
}

func TestNew(t *testing.T) {
	config := func(patterns ...string) network.Config {
		c := network.Config{Mode: network.Full}
		for _, text := range patterns {
			c.Entries = append(c.Entries, network.Entry{Pattern: text})
		}
		return c
	}
	if _, err := network.New(config("*.example.com", "a.b", "*.example.org")); strings.Count(fmt.Sprint(err),
		"invalid host pattern") != 2 {
		t.Errorf("without a list of public suffixes: %v", err)
	}
	broad := network.Config{Mode: network.Full, PublicSuffix: isTLD,
		Entries: []network.Entry{{Pattern: "*.com", Broad: true}, {Pattern: "*.net", Deny: true}}}
	p, err := network.New(broad)
	if err != nil || p.Decide(requestTo(t, "a.com")).Ruling != network.Allow {
		t.Errorf("a broad entry: %v", err)
	}
	if _, err := network.New(config(make([]string, 10_001)...)); err == nil ||
		!strings.Contains(err.Error(), "too many entries") {
		t.Errorf("too many: %v", err)
	}
	if _, err := network.New(network.Config{Mode: 3}); err == nil {
		t.Error("an unknown mode is accepted")
	}
	c := config("a.b")
	c.Entries[0].Protocols = []network.Protocol{6}
	if _, err := network.New(c); err == nil {
		t.Error("an unknown protocol is accepted")
	}
}

func TestDecide(t *testing.T) {
	full, limited := network.Config{Mode: network.Full}, network.Config{Mode: network.Limited}
	asks := network.Config{Mode: network.Full, Ask: true}
	private := network.Config{Mode: network.Full, AllowPrivate: true, Ask: true}
	for _, tt := range []struct {
		name    string
		config  network.Config
		entries string
		host    string
		ruling  network.Ruling
		reason  network.Reason
	}{
		{"mode none", network.Config{}, "*", "a.example.com", network.Deny, network.ProxyDisabled},
		{"deny before allow", full, "a.example.com !a.example.com", "a.example.com", network.Deny, network.Denied},
		{"deny is not asked", asks, "!a.example.com", "a.example.com", network.Deny, network.Denied},
		{"deny everything", full, "a.example.com 10.1.2.3 !*", "10.1.2.3", network.Deny, network.Denied},
		{"deny below a public suffix", full, "* !*.com", "a.com", network.Deny, network.Denied},
		{"deny an address in NAT64", full, "[64:ff9b::]/96 !93.184.216.34", "[64:ff9b::5db8:d822]", network.Deny, network.Denied},
		{"deny on another port", full, "a.example.com !a.example.com:22", "a.example.com:80", network.Allow, network.Allowed},
		{"a miss", full, "a.example.com", "b.example.com", network.Deny, network.NotAllowed},
		{"a miss is asked", asks, "a.example.com", "b.example.com", network.Ask, network.NotAllowed},
		{"a public address is asked", asks, "*", "93.184.216.34", network.Ask, network.NotAllowed},
		{"a private address is not asked", asks, "*", "10.1.2.3", network.Deny, network.NotAllowedLocal},
		{"a local name is not asked", asks, "*", "localhost", network.Deny, network.NotAllowedLocal},
		{"a private address is asked", private, "*", "10.1.2.3", network.Ask, network.NotAllowed},
		{"metadata is not asked", private, "*", "169.254.169.254", network.Deny, network.NotAllowedLocal},
		{"a private range", full, "10.1.0.0/16", "10.1.2.3", network.Allow, network.Allowed},
		{"a wide range over a private one", full, "0.0.0.0/0", "10.1.2.3", network.Deny, network.NotAllowedLocal},
		{"a range over metadata", full, "169.254.0.0/16", "169.254.169.254", network.Deny, network.NotAllowedLocal},
		{"the metadata address", full, "169.254.169.254", "169.254.169.254", network.Allow, network.Allowed},
		{"a range over NAT64", full, "[64:ff9b::]/96", "[64:ff9b::7f00:1]", network.Deny, network.NotAllowedLocal},
		{"a range that is NAT64", full, "[64:ff9b::]/96", "[64:ff9b::5db8:d822]", network.Allow, network.Allowed},
		{"limited", limited, "a.example.com", "a.example.com", network.Allow, network.Allowed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPolicy(t, tt.config, strings.Fields(tt.entries)...)
			if d := p.Decide(requestTo(t, tt.host)); d.Ruling != tt.ruling || d.Reason != tt.reason {
				t.Errorf("%v %s, want %v %s", d.Ruling, d.Reason, tt.ruling, tt.reason)
			}
		})
	}
	var none *network.Policy
	if d := none.Decide(requestTo(t, "a.example.com")); d.Ruling != network.Deny ||
		d.Reason != network.ProxyDisabled {
		t.Errorf("no policy: %v %s", d.Ruling, d.Reason)
	}
	for _, r := range []network.Request{{}, {Port: 80}, {Host: requestTo(t, "a.example.com").Host},
		{Host: requestTo(t, "a").Host, Port: 1, Protocol: 6}} {
		if d := policyOf(t, "*").Decide(r); d.Ruling != network.Reject {
			t.Errorf("%v: %v", r, d.Ruling)
		}
	}
}

func TestLimited(t *testing.T) {
	for _, tt := range []struct {
		name     string
		protocol network.Protocol
		port     uint16
		method   string
		reason   network.Reason
	}{
		{"GET", network.HTTP, 80, "GET", network.Allowed},
		{"OPTIONS", network.HTTP, 80, "OPTIONS", network.Allowed},
		{"POST", network.HTTP, 80, "POST", network.MethodNotAllowed},
		{"small letters", network.HTTP, 80, "get", network.MethodNotAllowed},
		{"no method", network.HTTP, 443, "", network.MethodNotAllowed},
		{"CONNECT for TLS", network.HTTPSConnect, 443, "", network.MITMRequired},
		{"CONNECT for another port", network.HTTPSConnect, 22, "", network.MethodNotAllowed},
		{"a method in CONNECT", network.HTTPSConnect, 8080, "HEAD", network.Allowed},
		{"SOCKS5 for TLS", network.SOCKS5TCP, 443, "", network.MITMRequired},
		{"a datagram", network.SOCKS5UDP, 443, "GET", network.MethodNotAllowed},
		{"a redirected connection", network.TransparentTCP, 443, "", network.MITMRequired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPolicy(t, network.Config{Mode: network.Limited, Ask: true}, "a.example.com")
			r := requestTo(t, "a.example.com")
			r.Protocol, r.Port, r.Method = tt.protocol, tt.port, tt.method
			if d := p.Decide(r); d.Reason != tt.reason ||
				(d.Ruling == network.Allow) != (tt.reason == network.Allowed) {
				t.Errorf("%v %s, want %s", d.Ruling, d.Reason, tt.reason)
			}
			// Nothing is asked about that the mode would refuse.
			r.Host = requestTo(t, "b.example.com").Host
			if d := p.Decide(r); d.Reason != network.NotAllowed ||
				(d.Ruling == network.Ask) != (tt.reason == network.Allowed) {
				t.Errorf("a miss: %v %s", d.Ruling, d.Reason)
			}
		})
	}
}

func TestProtocols(t *testing.T) {
	c := network.Config{Mode: network.Full, Entries: []network.Entry{
		{Pattern: "a.example.com", Protocols: []network.Protocol{network.HTTP, network.SOCKS5UDP}},
		{Pattern: "b.example.com"},
		{Pattern: "b.example.com", Deny: true, Protocols: []network.Protocol{network.SOCKS5TCP}},
		// A denial for one protocol hides no wider one for all.
		{Pattern: "c.d.example.com"},
		{Pattern: "c.d.example.com", Deny: true, Protocols: []network.Protocol{network.SOCKS5TCP}},
		{Pattern: "**.d.example.com", Deny: true},
		{Pattern: "f.e.example.com"},
		{Pattern: "*.e.example.com", Deny: true, Protocols: []network.Protocol{network.SOCKS5TCP}},
		{Pattern: "**.example.com", Deny: true, Protocols: []network.Protocol{network.DNS}},
	}}
	p, err := network.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string][]network.Protocol{
		"a.example.com":   {network.HTTP, network.SOCKS5UDP},
		"b.example.com":   {network.HTTP, network.HTTPSConnect, network.SOCKS5UDP, network.TransparentTCP},
		"c.d.example.com": nil,
		"f.e.example.com": {network.HTTP, network.HTTPSConnect, network.SOCKS5UDP, network.TransparentTCP},
	} {
		var got []network.Protocol
		for protocol := network.HTTP; protocol <= network.DNS; protocol++ {
			r := requestTo(t, host)
			r.Protocol = protocol
			if p.Decide(r).Ruling == network.Allow {
				got = append(got, protocol)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
}

func TestVet(t *testing.T) {
	full, private := network.Config{Mode: network.Full},
		network.Config{Mode: network.Full, AllowPrivate: true}
	own := network.Config{Mode: network.Full, HostAddrs: []netip.Addr{netip.MustParseAddr("93.184.216.99"),
		netip.MustParseAddr("fe80::7%eth0")}}
	late := network.Config{Mode: network.Full,
		IsHostAddr: func(a netip.Addr) bool { return a == netip.MustParseAddr("93.184.216.98") }}
	ownPrivate := own
	ownPrivate.AllowPrivate = true
	for _, tt := range []struct {
		name          string
		config        network.Config
		entries, host string
		addrs, want   string
		reason        network.Reason
	}{
		{"public ones", full, "a.b", "a.b", "93.184.216.34 2606:2800::1", "93.184.216.34 2606:2800::1", network.Allowed},
		{"no address", full, "a.b", "a.b", "", "", network.DNSFailed},
		{"a mapped one", full, "a.b", "a.b", "::ffff:93.184.216.34", "93.184.216.34", network.Allowed},
		{"a zone", full, "a.b", "a.b", "2606:2800::1%eth0", "", network.NotAllowedLocal},
		{"mixed", full, "a.b", "a.b", "10.1.2.3 93.184.216.34 ::1", "93.184.216.34", network.Allowed},
		{"a denied one beside a private one", full, "a.b !10.1.2.3", "a.b", "10.1.2.3 10.1.2.4", "", network.Denied},
		{"a denied one in NAT64", private, "a.b !10.1.2.3", "a.b", "64:ff9b::a01:203", "", network.Denied},
		{"denied on another port", private, "a.b !10.1.2.3:22", "a.b", "10.1.2.3", "10.1.2.3", network.Allowed},
		{"two entries", full, "a.b 10.1.2.3:80", "a.b", "10.1.2.3", "10.1.2.3", network.Allowed},
		{"two entries, another port", full, "a.b 10.1.2.3:80", "a.b:81", "10.1.2.3", "", network.NotAllowedLocal},
		{"a name and a range", full, "a.b 10.1.0.0/16", "a.b", "10.1.2.3", "10.1.2.3", network.Allowed},
		{"a name and a wide range", full, "a.b 0.0.0.0/0", "a.b", "10.1.2.3", "", network.NotAllowedLocal},
		{"private addresses open", private, "a.b", "a.b", "127.0.0.1 10.1.2.3 fd00::1", "127.0.0.1 10.1.2.3 fd00::1", network.Allowed},
		{"private open, metadata", private, "a.b", "a.b", "169.254.169.254 100.100.100.200 168.63.129.16 fd00:ec2::254", "", network.NotAllowedLocal},
		{"private open, metadata in NAT64", private, "a.b", "a.b", "64:ff9b::a9fe:a9fe", "", network.NotAllowedLocal},
		{"own addresses", own, "a.b", "a.b", "93.184.216.99 fe80::7", "", network.NotAllowedLocal},
		{"an own address in a range", own, "a.b 93.184.216.0/24", "a.b", "93.184.216.99", "", network.NotAllowedLocal},
		{"an own address with an entry", own, "a.b 93.184.216.99", "a.b", "93.184.216.99", "93.184.216.99", network.Allowed},
		{"an own address, private open", ownPrivate, "a.b", "a.b", "93.184.216.99", "93.184.216.99", network.Allowed},
		{"own addresses of now", late, "a.b", "a.b", "93.184.216.98 93.184.216.97", "93.184.216.97", network.Allowed},
		{"own addresses in others", late, "a.b", "a.b", "64:ff9b::5db8:d862 2002:5db8:d862::1 2606:2800::5efe:5db8:d862", "", network.NotAllowedLocal},
		{"an own address of now, by itself", late, "93.184.216.98", "93.184.216.98", "93.184.216.98", "93.184.216.98", network.Allowed},
		{"carriers of a private one", full, "a.b", "a.b", "2606:2800::5efe:a01:203 2606:2800::200:5efe:a01:203 64:ff9b:1:a01:2:300::", "", network.NotAllowedLocal},
		{"carriers of metadata, private open", private, "a.b", "a.b",
			"2606:2800::5efe:a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00:: 64:ff9b:1:a9:fe:a9fe:: 64:ff9b:1:0:a9:fea9:fe00:0 64:ff9b:1::a9fe:a9fe", "", network.NotAllowedLocal},
		{"a denied one, carried", private, "a.b !10.1.2.3", "a.b", "2606:2800::5efe:a01:203 64:ff9b:1:a01:2:300::", "", network.Denied},
		{"no carrier", full, "a.b", "a.b", "2606:2800::1:5efe:a01:203", "2606:2800::1:5efe:a01:203", network.Allowed},
		{"ranges that lead nowhere", full, "a.b", "a.b", "192.88.99.1 3fff::1 5f00::1 2001:2::1 2001:20::1 100:0:0:1::1", "", network.NotAllowedLocal},
		{"localhost", full, "localhost:80", "localhost", "127.0.0.1 ::1", "127.0.0.1 ::1", network.Allowed},
		{"localhost somewhere else", full, "localhost", "localhost", "93.184.216.34", "", network.NotAllowedLocal},
		{"localhost without an entry", full, "127.0.0.1", "localhost", "127.0.0.1", "", network.NotAllowedLocal},
		{"localhost, denied address", full, "localhost !127.0.0.0/8", "localhost", "127.0.0.1 ::1", "::1", network.Allowed},
		{"an address", full, "93.184.216.34", "93.184.216.34", "93.184.216.34 93.184.216.35", "93.184.216.34", network.Allowed},
		{"a private address", full, "10.1.2.3", "10.1.2.3", "10.1.2.3", "10.1.2.3", network.Allowed},
		{"mode none", network.Config{}, "a.b", "a.b", "93.184.216.34", "", network.ProxyDisabled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPolicy(t, tt.config, strings.Fields(tt.entries)...)
			var addrs []netip.Addr
			for _, a := range strings.Fields(tt.addrs) {
				addrs = append(addrs, netip.MustParseAddr(a))
			}
			got, d := p.Vet(requestTo(t, tt.host), addrs)
			text := strings.Trim(fmt.Sprint(got), "[]")
			if text != tt.want || d.Reason != tt.reason || (d.Ruling == network.Allow) != (text != "") {
				t.Errorf("%q, %v %s, want %q, %s", text, d.Ruling, d.Reason, tt.want, tt.reason)
			}
		})
	}
	var none *network.Policy
	if got, d := none.Vet(requestTo(t, "a.b"),
		[]netip.Addr{netip.MustParseAddr("93.184.216.34")}); got != nil || d.Ruling != network.Deny {
		t.Errorf("no policy: %v, %v", got, d)
	}
	if got, d := policyOf(t, "*").Vet(requestTo(t, "a.b"), []netip.Addr{{}}); got != nil ||
		d.Ruling != network.Deny {
		t.Errorf("an address that is not valid: %v, %v", got, d)
	}
}

func TestHint(t *testing.T) {
	for _, tt := range []struct{ name, entries, host, pattern, hint string }{
		{"a miss", "", "a.b:443", "a.b:443", "an allow entry for a.b:443 opens it"},
		{"an IPv6 address", "", "[2606::1]:443", "[2606::1]:443", "an allow entry for [2606::1]:443 opens it"},
		{"a local name", "", "localhost:3000", "localhost:3000", "an allow entry for localhost:3000 opens it"},
		{"denied", "!a.b", "a.b", "", `the deny entry "a.b" names it, which wins over every entry that allows`},
		{"allowed", "a.b", "a.b", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := requestTo(t, tt.host)
			d := policyOf(t, strings.Fields(tt.entries)...).Decide(r)
			if got := d.Pattern(r); got != tt.pattern {
				t.Errorf("pattern %q, want %q", got, tt.pattern)
			}
			if got := d.Hint(r); got != tt.hint {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
			if tt.pattern != "" && policyOf(t, tt.pattern).Decide(r).Ruling != network.Allow {
				t.Error("the pattern does not open the host")
			}
		})
	}
	r := requestTo(t, "a.b")
	for _, reason := range []network.Reason{network.NotAllowedLocal, network.MethodNotAllowed,
		network.MITMRequired, network.DNSFailed, network.ProxyDisabled, network.Denied} {
		d := network.Decision{Reason: reason}
		if d.Hint(r) == "" || d.Pattern(r) != "" {
			t.Errorf("%s: hint %q, pattern %q", reason, d.Hint(r), d.Pattern(r))
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct{ wide, yes, no string }{
		{"a.b", "a.b A.B. a.b:443", "b x.a.b *.a.b **.a.b *"},
		{"*.a.b", "x.a.b x.y.a.b *.a.b *.x.a.b **.x.a.b x*.a.b *.x*.a.b *.a.b:443", "a.b **.a.b *.b *"},
		{"**.a.b", "a.b x.a.b *.a.b **.a.b x*.a.b", "b xa.b *.b"},
		{"x*.a.b", "x.a.b xy.a.b x*.a.b", "a.b y.a.b *.a.b xy*.a.b x*.y.a.b"},
		{"*", "a.b *.a.b *", "127.0.0.1 93.184.216.34 0.0.0.0/0 localhost *.localhost **.localhost"},
		{"*:443", "a.b:443 *:443", "a.b a.b:80 a.b:443-444 *"},
		{"a.b:80-90", "a.b:80 a.b:85-90", "a.b a.b:91 a.b:79-80"},
		{"10.0.0.0/8", "10.1.2.3 10.0.0.0/8 10.1.0.0/16 10.1.2.3:80", "11.0.0.1 0.0.0.0/0 a.b *"},
		{"0.0.0.0/0", "93.184.216.34 93.0.0.0/8 0.0.0.0/0", "10.1.2.3 10.0.0.0/8 127.0.0.1 168.63.129.16 [2606:2800::1]"},
		{"169.254.0.0/16", "169.254.0.0/24", "169.254.169.254"},
		{"169.254.169.254", "169.254.169.254 2852039166", "169.254.169.253"},
		{"[fd00::]/8", "[fd00::1]", "[fd00:ec2::254] [fc00::1]"},
		{"localhost", "localhost localhost:3000", "a.localhost 127.0.0.1"},
		{"**.localhost", "localhost a.localhost *.localhost", "localhost.localdomain"},
		{"*.localdomain", "a.localdomain", "localhost.localdomain"},
		{"a.**", "", "a.b"},
	} {
		for _, n := range strings.Fields(tt.yes) {
			if !network.Covers(tt.wide, n) {
				t.Errorf("%s does not cover %s", tt.wide, n)
			}
		}
		for _, n := range strings.Fields(tt.no) {
			if network.Covers(tt.wide, n) {
				t.Errorf("%s covers %s", tt.wide, n)
			}
		}
	}
}
