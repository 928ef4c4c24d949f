// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// A hostRow is a host as it arrived, and what becomes of it.
type hostRow struct {
	name, raw, want string // no want: refused
}

var (
	label63 = strings.Repeat("a", 63)
	name253 = strings.Repeat("a.", 126) + "a"
)

var nameRows = []hostRow{
	{"a name", "example.com", "example.com"},
	{"one label", "registry", "registry"},
	{"capitals", "API.Example.COM", "api.example.com"},
	{"one dot at the end", "example.com.", "example.com"},
	{"two dots at the end", "example.com..", ""},
	{"a dot at the beginning", ".example.com", ""},
	{"an empty label", "a..b", ""},
	{"a dot alone", ".", ""},
	{"nothing", "", ""},
	{"an underscore", "_srv.example.com", "_srv.example.com"},
	{"a label of 63", label63 + ".com", label63 + ".com"},
	{"a label of 64", label63 + "a.com", ""},
	{"253 bytes", name253, name253},
	{"253 bytes and a dot", name253 + ".", name253},
	{"254 bytes", name253 + "a", ""},
	{"255 bytes with two dots at the end", name253 + "..", ""},
	{"an A-label", "XN--BCHER-KVA.example", "xn--bcher-kva.example"},
	{"a U-label", "b\u00fccher.example", ""},
	{"full-width digits", "\uff11\uff12\uff17.0.0.1", ""},
	{"ideographic full stops", "127\u30020\u30020\u30021", ""},
	{"a space", "a b", ""},
	{"a NUL", "evil.test\x00.example.com", ""},
	{"a line feed", "evil.test\r\n.example.com", ""},
	{"DEL", "a\x7f.com", ""},
	{"a percent escape", "a%2ecom", ""},
	{"a user", "a@example.com", ""},
	{"a path", "example.com/", ""},
	{"a backslash", `example.com\evil.test`, ""},
	{"a query", "example.com?", ""},
	{"a fragment", "example.com#", ""},
	{"a comma", "a,b", ""},
	{"a wildcard", "*.example.com", ""},
	{"a port", "example.com:80", ""},
}

var addressRows = []hostRow{
	{"an address", "93.184.216.34", "93.184.216.34"},
	{"an address with a dot", "127.0.0.1.", "127.0.0.1"},
	{"decimal", "2130706433", "127.0.0.1"},
	{"hexadecimal", "0x7f000001", "127.0.0.1"},
	{"capital hexadecimal", "0X7F000001", "127.0.0.1"},
	{"octal", "0177.0.0.1", "127.0.0.1"},
	{"all octal", "017700000001", "127.0.0.1"},
	{"many zeros", "0000000000177.0.0.01", "127.0.0.1"},
	{"two parts", "127.1", "127.0.0.1"},
	{"two parts, hexadecimal", "0x7f.1", "127.0.0.1"},
	{"three parts", "0xa9.254.0xa9fe", "169.254.169.254"},
	{"zero", "0", "0.0.0.0"},
	{"the greatest number", "4294967295", "255.255.255.255"},
	{"a greater number", "4294967296", ""},
	{"a part of 256", "256.256.256.256", ""},
	{"the last of two too great", "1.16777216", ""},
	{"the last of three too great", "1.2.65536", ""},
	{"five parts", "1.2.3.4.5", ""},
	{"a name that ends in a number", "foo.1", ""},
	{"a name that ends in hexadecimal", "foo.0x4", ""},
	{"no digits", "0x", ""},
	{"no hexadecimal", "0xg", ""},
	{"no octal", "08.0.0.1", ""},
	{"an underscore in a number", "0x7_f.1", ""},
	{"a part that is a name", "127.a.1", ""},
	{"a name that begins with a number", "1.example.com", "1.example.com"},

	{"IPv6", "[2606:2800:0220:0001:0:0:0:34]", "2606:2800:220:1::34"},
	{"IPv6 capitals", "[2001:DB8::A]", "2001:db8::a"},
	{"mapped", "[::ffff:127.0.0.1]", "127.0.0.1"},
	{"mapped, hexadecimal", "[::ffff:7f00:1]", "127.0.0.1"},
	{"compatible", "[::127.0.0.1]", "::7f00:1"},
	{"a zone", "[fe80::1%eth0]", ""},
	{"an escaped zone", "[fe80::1%25eth0]", ""},
	{"an open bracket", "[::1", ""},
	{"a closing bracket", "::1]", ""},
	{"IPv4 in brackets", "[127.0.0.1]", ""},
	{"a name in brackets", "[example.com]", ""},
	{"nothing in brackets", "[]", ""},
	{"two brackets", "[[::1]]", ""},
	{"behind brackets", "[::1].example.com", ""},
	{"IPv6 without brackets", "::1", ""},
}

func TestParseHost(t *testing.T) {
	for _, tt := range slices.Concat(nameRows, addressRows) {
		t.Run(tt.name, func(t *testing.T) {
			h, err := network.ParseHost(tt.raw)
			if h.String() != tt.want || (err == nil) != (tt.want != "") {
				t.Fatalf("ParseHost(%q) = %q, %v, want %q", tt.raw, h, err, tt.want)
			}
			if bad := new(network.HostError); err != nil && (!errors.As(err, &bad) || bad.Host != tt.raw) {
				t.Errorf("the error %v is no HostError of %q", err, tt.raw)
			}
		})
	}
}

func TestParseAuthority(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		standard  uint16
		host      string // empty: refused
		port      uint16
	}{
		{"with a port", "api.example.com:443", 0, "api.example.com", 443},
		{"a port instead of the usual one", "api.example.com:8080", 80, "api.example.com", 8080},
		{"the usual port", "api.example.com", 80, "api.example.com", 80},
		{"an empty port", "api.example.com:", 80, "api.example.com", 80},
		{"no port where one is needed", "api.example.com", 0, "", 0},
		{"an empty port where one is needed", "api.example.com:", 0, "", 0},
		{"IPv6", "[::1]:3000", 0, "::1", 3000},
		{"IPv6, the usual port", "[::1]", 80, "::1", 80},
		{"the greatest port", "a:65535", 0, "a", 65535},
		{"port 0", "a:0", 80, "", 0},
		{"a greater port", "a:65536", 80, "", 0},
		{"a much greater port", "a:4294967376", 80, "", 0},
		{"a sign", "a:+80", 80, "", 0},
		{"a blank", "a: 80", 80, "", 0},
		{"a word", "a:http", 80, "", 0},
		{"two ports", "a:80:80", 80, "", 0},
		{"a URL", "http://api.example.com:443", 0, "", 0},
		{"a user", "user@api.example.com:443", 0, "", 0},
		{"a password", "user:1@api.example.com", 80, "", 0},
		{"IPv6 without brackets", "::1", 80, "", 0},
		{"text behind brackets", "[::1]80", 80, "", 0},
		{"an open bracket", "[::1:80", 80, "", 0},
		{"no host", ":80", 0, "", 0},
		{"nothing", "", 80, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, port, err := network.ParseAuthority(tt.raw, tt.standard)
			if h.String() != tt.host || port != tt.port || (err == nil) != (tt.host != "") {
				t.Fatalf("ParseAuthority(%q) = %q, %d, %v", tt.raw, h, port, err)
			}
			if bad := new(network.HostError); err != nil && (!errors.As(err, &bad) || bad.Host != tt.raw) {
				t.Errorf("the error %v is no HostError of %q", err, tt.raw)
			}
		})
	}
}

func TestHost(t *testing.T) {
	addr := netip.MustParseAddr
	if h := network.AddrHost(addr("::ffff:10.1.2.3")); h != network.AddrHost(addr("10.1.2.3")) {
		t.Errorf("two spellings of an address are two hosts: %v", h)
	}
	for _, a := range []netip.Addr{{}, addr("fe80::1%eth0")} {
		if h := network.AddrHost(a); h != (network.Host{}) {
			t.Errorf("AddrHost(%v) = %v", a, h)
		}
	}
	for name, local := range map[string]bool{
		"localhost": true, "a.b.localhost": true, "localhost.localdomain": true, "ip6-localhost": true,
		"localhost.example.com": false, "notlocalhost": false, "127.0.0.1": false,
	} {
		h, err := network.ParseHost(name)
		if err != nil || h.IsLocal() != local || (h.LocalAddrs() != nil) != local {
			t.Errorf("%s: local %v, addresses %v, %v", name, h.IsLocal(), h.LocalAddrs(), err)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"example.com.", "[::ffff:127.0.0.1]", "0x7f.1", "a..b", "xn--a", "foo.0x4",
		"[fe80::1%25e]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		h, err := network.ParseHost(raw)
		if err != nil {
			if h != (network.Host{}) {
				t.Fatalf("ParseHost(%q) = %v and %v", raw, h, err)
			}
			return
		}
		// What is normalized stays as it is.
		text := h.String()
		if addr, ok := h.Addr(); ok && addr.Is6() {
			text = "[" + text + "]"
		}
		if again, err := network.ParseHost(text); err != nil || again != h {
			t.Fatalf("ParseHost(%q) = %v; of that: %v, %v", raw, h, again, err)
		}
	})
}
