// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/network"
)

// spellings returns the ways in which an IPv4 address can be written.
func spellings(a netip.Addr) (list []string) {
	b := a.As4()
	number := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	for _, f := range []string{"%d", "0x%x", "0X%X", "0%o", "0x0000%08x", "0000%o"} {
		one := func(n uint32) string { return fmt.Sprintf(f, n) }
		list = append(list,
			one(number),
			one(uint32(b[0]))+"."+one(number&0xffffff),
			one(uint32(b[0]))+"."+one(uint32(b[1]))+"."+one(number&0xffff),
			one(uint32(b[0]))+"."+one(uint32(b[1]))+"."+one(uint32(b[2]))+"."+one(uint32(b[3])),
			fmt.Sprintf("%d.", b[0])+one(uint32(b[1]))+fmt.Sprintf(".0x%x.0%o", b[2], b[3]))
	}
	for _, text := range list {
		list = append(list, text+".")
	}
	return append(list, fmt.Sprintf("[::ffff:%s]", a),
		fmt.Sprintf("[::FFFF:%x:%x]", number>>16, number&0xffff),
		fmt.Sprintf("[0:0:0:0:0:ffff:%x:%x]", number>>16, number&0xffff))
}

// carriers returns the IPv6 addresses that lead to an IPv4 address.
func carriers(a netip.Addr) []string {
	b := a.As4()
	high, low := uint16(b[0])<<8|uint16(b[1]), uint16(b[2])<<8|uint16(b[3])
	return []string{
		fmt.Sprintf("[::%x:%x]", high, low),
		fmt.Sprintf("[::%s]", a),
		fmt.Sprintf("[::ffff:0:%x:%x]", high, low),
		fmt.Sprintf("[64:ff9b::%x:%x]", high, low),
		fmt.Sprintf("[64:ff9b::%s]", a),
		fmt.Sprintf("[64:ff9b:1::%x:%x]", high, low),
		fmt.Sprintf("[2002:%x:%x::1]", high, low),
		fmt.Sprintf("[2001:0:%x:%x::1]", high, low),
		fmt.Sprintf("[2001:0:808:808::%x:%x]", ^high, ^low),
	}
}

// TestAddressSpellings writes loopback, private and metadata addresses in every way there is. The
// widest policy refuses each, as the host of a request and as the address of an allowed name.
func TestAddressSpellings(t *testing.T) {
	p := policyOf(t, "*", "0.0.0.0/0", "[::]/0")
	open := newPolicy(t, network.Config{Mode: network.Full, AllowPrivate: true}, "*", "0.0.0.0/0", "[::]/0")
	name := requestTo(t, "a.example.com")
	check := func(t *testing.T, p *network.Policy, text string) {
		h, err := network.ParseHost(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if d := p.Decide(network.Request{Host: h, Port: 80, Method: "GET"}); d.Ruling != network.Deny ||
			d.Reason != network.NotAllowedLocal {
			t.Errorf("%s: %v %s", text, d.Ruling, d.Reason)
		}
		addr, ok := h.Addr()
		if fit, d := p.Vet(name, []netip.Addr{addr}); !ok || len(fit) > 0 || d.Ruling != network.Deny {
			t.Errorf("a name with the address %s: %v %s", text, fit, d.Reason)
		}
	}
	for _, text := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "172.16.5.6",
		"172.31.255.255",
		"192.168.7.8", "192.0.0.8", "192.0.2.1", "198.19.255.255", "198.51.100.7", "203.0.113.7",
		"224.0.0.5", "240.0.0.1",
		"255.255.255.255", "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16",
		"192.0.0.192",
	} {
		t.Run(text, func(t *testing.T) {
			addr := netip.MustParseAddr(text)
			for _, s := range spellings(addr) {
				h, err := network.ParseHost(s)
				if err != nil || h != network.AddrHost(addr) {
					t.Errorf("%s is %v, %v", s, h, err)
				}
				check(t, p, s)
			}
			for _, s := range carriers(addr) {
				check(t, p, s)
			}
		})
	}
	for _, text := range []string{"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16",
		"192.0.0.192"} {
		for _, s := range append(spellings(netip.MustParseAddr(text)),
			carriers(netip.MustParseAddr(text))...) {
			if !strings.Contains(s, "64:ff9b:1:") { // closed as a range of its own
				check(t, open, s)
			}
		}
	}
	for _, text := range strings.Fields("::1 :: fc00::1 fd00::1 fe80::1 febf::1 fec0::1 ff02::1 ff0e::1 2001:db8::1 100::1 64:ff9b:1::1") {
		check(t, p, "["+text+"]")
	}
	for _, text := range strings.Fields("fe80::1 fd00:ec2::254 fd20:ce::254 fd00:c1::a9fe:a9fe fd00:42::42 fd00:a9fe:a9fe::1 fd00:100::100:200") {
		check(t, p, "["+text+"]")
		check(t, open, "["+text+"]")
	}
}

// drawn returns generators of hosts and of patterns that match many of them.
func drawn() (host, pattern *rapid.Generator[string]) {
	pieces := strings.Fields("a b-c x1 example com org localhost")
	host = rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 4).Draw(t, "labels"), ".")
		}),
		rapid.SampledFrom([]string{"10.1.2.3", "93.184.216.34", "[2606:2800::1]", "127.0.0.1",
			"[64:ff9b::a01:203]"}),
	)
	pattern = rapid.Custom(func(t *rapid.T) string {
		h := host.Draw(t, "host")
		switch rapid.IntRange(0, 6).Draw(t, "form") {
		case 0:
			return rapid.SampledFrom([]string{"*", "0.0.0.0/0", "10.0.0.0/8", "[::]/0",
				"127.0.0.0/8"}).Draw(t, "wide")
		case 1:
			return h + ":80"
		case 2:
			return h + ":1-90"
		}
		if strings.ContainsAny(h, "[0123456789") && !strings.Contains(h, "x1") {
			return h
		}
		switch rapid.IntRange(0, 3).Draw(t, "wildcard") {
		case 0:
			return "*." + h
		case 1:
			return "**." + h
		case 2:
			return h[:1] + "*" + h[1:]
		}
		return h
	})
	return host, pattern
}

// TestDenyWins draws policies: what a deny entry matches alone is refused, whatever else a policy
// says, and reported as denied.
func TestDenyWins(t *testing.T) {
	host, pattern := drawn()
	rapid.Check(t, func(t *rapid.T) {
		deny := network.Entry{Pattern: pattern.Draw(t, "deny"), Deny: true}
		c := network.Config{Mode: network.Full, PublicSuffix: isTLD, Ask: rapid.Bool().Draw(t, "ask"),
			AllowPrivate: rapid.Bool().Draw(t, "private")}
		for range rapid.IntRange(0, 6).Draw(t, "entries") {
			c.Entries = append(c.Entries, network.Entry{Pattern: pattern.Draw(t, "allow"), Broad: true,
				Deny: rapid.IntRange(0, 9).Draw(t, "denies") == 0})
		}
		alone, err := network.New(network.Config{Mode: network.Full, Entries: []network.Entry{deny}})
		if err != nil {
			t.Fatal(err)
		}
		c.Entries = append(c.Entries, deny)
		p, err := network.New(c)
		if err != nil {
			t.Fatal(err)
		}
		r := requestTo(t, host.Draw(t, "request"))
		d := p.Decide(r)
		if alone.Decide(r).Reason == network.Denied &&
			(d.Ruling != network.Deny || d.Reason != network.Denied) {
			t.Fatalf("%v to %s: %v %s", c.Entries, r.Host, d.Ruling, d.Reason)
		}
		if d.Ruling == network.Allow && (d.Entry == nil || d.Entry.Deny) {
			t.Fatalf("%s is allowed by %v", r.Host, d.Entry)
		}
	})
}

// TestCoversHolds draws pairs of patterns: of one that covers another, all that the other opens is
// open.
func TestCoversHolds(t *testing.T) {
	host, pattern := drawn()
	rapid.Check(t, func(t *rapid.T) {
		wide, narrow := pattern.Draw(t, "wide"), pattern.Draw(t, "narrow")
		if !network.Covers(wide, narrow) {
			return
		}
		open := func(text string, r network.Request) bool {
			p, err := network.New(network.Config{Mode: network.Full,
				Entries: []network.Entry{{Pattern: text, Broad: true}}})
			if err != nil {
				t.Fatal(err)
			}
			return p.Decide(r).Ruling == network.Allow
		}
		for range 8 {
			if r := requestTo(t, host.Draw(t, "host")); open(narrow, r) && !open(wide, r) {
				t.Fatalf("%s covers %s, and closes %s", wide, narrow, r.Host)
			}
		}
	})
}

// FuzzDecide gives random bytes to a policy that allows one name: what is allowed is that name.
func FuzzDecide(f *testing.F) {
	p := policyOf(f, "api.example.com:443")
	f.Add("api.example.com:443")
	f.Add("API.example.com.:443")
	f.Add("api.example.com:443\x00")
	f.Add("[::ffff:127.0.0.1]:443")
	f.Fuzz(func(t *testing.T, raw string) {
		h, port, err := network.ParseAuthority(raw, 0)
		if d := p.Decide(network.Request{Host: h, Port: port, Method: "GET"}); d.Ruling != network.Allow {
			return
		}
		if err != nil || h.String() != "api.example.com" || strings.ToLower(raw) != "api.example.com:443" &&
			strings.ToLower(raw) != "api.example.com.:443" && !strings.HasSuffix(raw, "0443") {
			t.Fatalf("%q is allowed", raw)
		}
	})
}

// FuzzPattern reads patterns: none makes New panic, and none opens a protected address that it
// does not spell.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"*.example.com:8000-8999", "**.bücher.example", "a*b.*.c", "[fd00::]/8:443",
		"10.1.0.0/16", "*", "127.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, deny := range []bool{false, true} {
			p, err := network.New(network.Config{Mode: network.Full, PublicSuffix: isTLD,
				Entries: []network.Entry{{Pattern: text, Deny: deny}}})
			if (p == nil) != (err != nil) {
				t.Fatalf("%q: %v, %v", text, p, err)
			}
			if p == nil {
				continue
			}
			if !network.Covers(text, text) {
				t.Fatalf("%q does not cover itself", text)
			}
			for _, host := range []string{"example.com", "a.b.example.com", "localhost", "[2606:2800::1]"} {
				if d := p.Decide(requestTo(t, host)); deny && d.Ruling == network.Allow {
					t.Fatalf("deny %q allows %s", text, host)
				}
			}
			if p.Decide(requestTo(t, "169.254.169.254")).Ruling != network.Allow {
				continue
			}
			if q, err := network.New(network.Config{Mode: network.Full,
				Entries: []network.Entry{{Pattern: "169.254.169.254"},
					{Pattern: text, Deny: true}}}); err != nil ||
				q.Decide(requestTo(t, "169.254.169.253")).Reason == network.Denied {
				t.Fatalf("%q opens the metadata address and more: %v", text, err)
			}
		}
	})
}
