// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sallyport-dev/sallyport/network"
)

const headSize = 12 // of a message

// A recorder decides by a table, and remembers what was refused.
type recorder struct {
	mu      sync.Mutex
	refused []string
}

// server allows example.com and names below it, asks about ask.test, and refuses others.
func server(r *recorder) *SyntheticNames {
	return &SyntheticNames{
		Decide: func(h network.Host) network.Decision {
			switch name := h.String(); {
			case name == "example.com", name == "app.localhost", strings.HasSuffix(name, ".example.com"),
				name == "localhost":
				return network.Decision{Ruling: network.Allow}
			case name == "ask.test":
				return network.Decision{Ruling: network.Ask}
			}
			return network.Decision{Reason: network.NotAllowed}
		},
		Report: func(h network.Host, _ network.Decision) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.refused = append(r.refused, h.String())
		},
	}
}

// dnsQuestion returns a query, with EDNS if extended is set.
func dnsQuestion(name string, kind dnsmessage.Type, class dnsmessage.Class, extended bool) []byte {
	b := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	b = append(b, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(kind))
	b = binary.BigEndian.AppendUint16(b, uint16(class))
	if extended {
		b[11] = 1
		b = append(b, 0, 0, byte(dnsmessage.TypeOPT), 4, 0xd0, 0, 0, 0, 0, 0, 0)
	}
	return b
}

func serviceQuestion(name string) []byte {
	return dnsQuestion(name, dnsmessage.TypeSRV, dnsmessage.ClassINET, false)
}

// TestAnswer: allowed names have addresses that stand for them, others do not exist.
func TestAnswer(t *testing.T) {
	v4 := func(s string) []byte { return netip.MustParseAddr(s).AsSlice() }
	for _, c := range []struct {
		name    string
		query   []byte
		code    dnsmessage.RCode
		data    [][]byte
		refused string
	}{
		{"allowed", dnsQuestion("example.com", dnsmessage.TypeA, dnsmessage.ClassINET, false), dnsmessage.RCodeSuccess, [][]byte{v4("198.18.0.1")}, ""},
		{"in capitals", dnsQuestion("API.Example.COM", dnsmessage.TypeA, dnsmessage.ClassINET, false), dnsmessage.RCodeSuccess, [][]byte{v4("198.18.0.1")}, ""},
		{"IPv6", dnsQuestion("example.com", dnsmessage.TypeAAAA, dnsmessage.ClassINET, false), dnsmessage.RCodeSuccess, [][]byte{v4("fd5a:7970:6f72::1")}, ""},
		{"asked about", dnsQuestion("ask.test", dnsmessage.TypeA, dnsmessage.ClassINET, true), dnsmessage.RCodeSuccess, [][]byte{v4("198.18.0.1")}, ""},
		{"refused", dnsQuestion("evil.test", dnsmessage.TypeA, dnsmessage.ClassINET, false), dnsmessage.RCodeNameError, nil, "evil.test"},
		{"refused, extended", dnsQuestion("data.evil.test", dnsmessage.TypeA, dnsmessage.ClassINET, true), dnsmessage.RCodeNameError, nil, "data.evil.test"},
		{"refused, other type", dnsQuestion("evil.test", 16, dnsmessage.ClassINET, false), dnsmessage.RCodeNameError, nil, "evil.test"},
		{"other type", dnsQuestion("example.com", 65, dnsmessage.ClassINET, false), dnsmessage.RCodeSuccess, nil, ""},
		{"a service", serviceQuestion("_http._tcp.example.com"), dnsmessage.RCodeSuccess, nil, ""},
		{"a service, refused", serviceQuestion("_http._tcp.evil.test"),
			dnsmessage.RCodeNameError, nil, "evil.test"},
		{"a service of one label", serviceQuestion("_tcp.test"), dnsmessage.RCodeNameError, nil, "test"},
		{"an address of a service",
			dnsQuestion("_http._tcp.evil.test", dnsmessage.TypeA, dnsmessage.ClassINET, false),
			dnsmessage.RCodeNameError, nil, "_http._tcp.evil.test"},
		{"loopback", dnsQuestion("localhost", dnsmessage.TypeA, dnsmessage.ClassINET, false), dnsmessage.RCodeSuccess, [][]byte{v4("127.0.0.1")}, ""},
		{"below localhost", dnsQuestion("other.localhost", dnsmessage.TypeA, dnsmessage.ClassINET, false), dnsmessage.RCodeSuccess, [][]byte{v4("127.0.0.1")}, ""},
		{"below localhost, allowed", dnsQuestion("app.localhost", dnsmessage.TypeA, dnsmessage.ClassINET, false), dnsmessage.RCodeSuccess, [][]byte{v4("198.18.0.1")}, ""},
		{"an address", dnsQuestion("192.0.2.1", dnsmessage.TypeA, dnsmessage.ClassINET, false), dnsmessage.RCodeNameError, nil, ""},
		{"an address in one number", dnsQuestion("2130706433", dnsmessage.TypeA, dnsmessage.ClassINET, false), dnsmessage.RCodeNameError, nil, ""},
		{"not a name", dnsQuestion("a b.example.com", dnsmessage.TypeA, dnsmessage.ClassINET, false), dnsmessage.RCodeNameError, nil, ""},
		{"root", append([]byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, 0, 0, 2, 0, 1), dnsmessage.RCodeNameError, nil, ""},
		{"other class", dnsQuestion("example.com", dnsmessage.TypeA, 3, false), dnsmessage.RCodeRefused, nil, ""},
		{"a dot in a label", append([]byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, "\x05a.com\x00\x00\x01\x00\x01"...), dnsmessage.RCodeFormatError, nil, ""},
		{"a reference", append([]byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, "\xc0\x0c\x00\x01\x00\x01"...), dnsmessage.RCodeFormatError, nil, ""},
		{"no end", append([]byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, "\x03com"...), dnsmessage.RCodeFormatError, nil, ""},
		{"two questions", bytes.Replace(dnsQuestion("example.com", dnsmessage.TypeA, dnsmessage.ClassINET, false), []byte{0, 1, 0, 0}, []byte{0, 2, 0, 0}, 1), dnsmessage.RCodeFormatError, nil, ""},
		{"an update", bytes.Replace(dnsQuestion("example.com", dnsmessage.TypeA, dnsmessage.ClassINET, false), []byte{1, 0}, []byte{0x29, 0}, 1), dnsmessage.RCodeNotImplemented, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r recorder
			got := server(&r).Answer(c.query)
			if len(got) < headSize {
				t.Fatalf("got %x", got)
			}
			flags := binary.BigEndian.Uint16(got[2:])
			if !bytes.Equal(got[:2], c.query[:2]) || flags&0x8000 == 0 ||
				dnsmessage.RCode(flags&0xf) != c.code {
				t.Errorf("head %x, want the code %d", got[:headSize], c.code)
			}
			if n := int(binary.BigEndian.Uint16(got[6:])); n != len(c.data) {
				t.Errorf("%d records, want %d", n, len(c.data))
			}
			for _, d := range c.data {
				if !bytes.Contains(got, append([]byte{0, 0, 0, lifetime, 0, byte(len(d))}, d...)) {
					t.Errorf("%x is not in %x", d, got)
				}
			}
			if refused := strings.Join(r.refused, " "); refused != c.refused {
				t.Errorf("reported %q, want %q", refused, c.refused)
			}
			if explained := bytes.Contains(got, []byte("refuses this name")); explained != (c.refused != "" &&
				c.query[11] == 1) {
				t.Errorf("extended error: %v in %x", explained, got)
			}
		})
	}
	for name, message := range map[string][]byte{"empty": nil, "short": make([]byte, headSize-1),
		"an answer": server(&recorder{}).Answer(dnsQuestion("example.com", dnsmessage.TypeA,
			dnsmessage.ClassINET, false))} {
		if got := server(&recorder{}).Answer(message); got != nil {
			t.Errorf("%s: answered with %x", name, got)
		}
	}
}

// TestResolver asks with the resolver of package net, over a socket.
func TestResolver(t *testing.T) {
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var r recorder
	s := server(&r)
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(conn) }()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	got, err := resolver.LookupNetIP(t.Context(), "ip", "api.example.com.")
	want := []netip.Addr{netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("fd5a:7970:6f72::1")}
	for i := range got {
		got[i] = got[i].Unmap()
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, addr := range got {
		if h, ok := s.Host(addr); !ok || h.String() != "api.example.com" {
			t.Errorf("%v stands for %v, %v", addr, h, ok)
		}
	}
	var notFound *net.DNSError
	if _, err := resolver.LookupHost(t.Context(), "secret.evil.test."); !errors.As(err, &notFound) ||
		!notFound.IsNotFound {
		t.Errorf("a refused name: %v", err)
	}
	conn.Close()
	<-done
}

// TestHost: addresses that were not given out stand for nothing.
func TestHost(t *testing.T) {
	s := server(&recorder{})
	s.of("a.example.com")
	for addr, want := range map[string]string{
		"198.18.0.1": "a.example.com", "::ffff:198.18.0.1": "a.example.com", "fd5a:7970:6f72::1": "a.example.com",
		"198.18.0.0": "", "198.18.0.2": "", "198.20.0.1": "", "fd5a:7970:6f72::": "", "fd5a:7970:6f72::2": "", "fd5a:7970:6f72:1::1": "", "127.0.0.1": "",
	} {
		h, ok := s.Host(netip.MustParseAddr(addr))
		if got := h.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v", addr, got, ok)
		}
	}
}

// TestManyNames: a name keeps its address while it is known; an address stands for its last name.
func TestManyNames(t *testing.T) {
	s := server(&recorder{})
	name := func(i int) string { return fmt.Sprintf("n%d.example.com", i) }
	const all = MaxAddresses + 100
	for i := range all {
		first := s.of(name(i))
		if again := s.of(name(i)); again != first || first != uint32(i%MaxAddresses)+1 {
			t.Fatalf("%s has %d, then %d", name(i), first, again)
		}
	}
	if len(s.index) != MaxNames || len(s.slots) != MaxAddresses {
		t.Errorf("%d names, %d addresses", len(s.index), len(s.slots))
	}
	for _, i := range []int{all - 1, all - MaxNames, 100, MaxAddresses - 1} {
		base := range4.Addr().As4()
		at := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil,
			binary.BigEndian.Uint32(base[:])+uint32(i%MaxAddresses)+1)))
		if h, ok := s.Host(at); !ok || h.String() != name(i) {
			t.Errorf("%v stands for %v, not for %s", at, h, name(i))
		}
	}
}

// FuzzAnswer: answers are well formed, and only names that are allowed have addresses.
func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"example.com", "evil.test", "localhost", "a.b.c.example.com"} {
		f.Add(dnsQuestion(name, dnsmessage.TypeA, dnsmessage.ClassINET, true))
		f.Add(dnsQuestion(name, dnsmessage.TypeAAAA, dnsmessage.ClassINET, false))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		s := server(&recorder{})
		got := s.Answer(message)
		if got == nil {
			return
		}
		if len(got) < headSize || !bytes.Equal(got[:2], message[:2]) || got[2]&0x80 == 0 {
			t.Fatalf("%x: %x", message, got)
		}
		if len(s.slots) > 0 {
			if h, err := network.ParseHost(s.slots[0]); err != nil || s.Decide(h).Ruling == network.Deny {
				t.Errorf("%q has an address", s.slots[0])
			}
		}
		if again := s.Answer(got); again != nil {
			t.Errorf("an answer is answered: %x", again)
		}
	})
}
