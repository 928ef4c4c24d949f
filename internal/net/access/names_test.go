// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestNameServer(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"one", "nameserver 192.0.2.1\n", "192.0.2.1:53"},
		{"the first", "# nameserver 192.0.2.9\nsearch a.example\n nameserver\t192.0.2.1 x\nnameserver 192.0.2.2\n", "192.0.2.1:53"},
		{"IPv6", "nameserver 2001:db8::1", "[2001:db8::1]:53"},
		{"IPv4 in IPv6", "nameserver ::ffff:192.0.2.1", "192.0.2.1:53"},
		{"the loopback", "nameserver 127.0.0.53", "127.0.0.53:53"},
		{"none", "options edns0\nnameserver\n", "127.0.0.1:53"},
		{"empty", "", "127.0.0.1:53"},
		{"a zone", "nameserver fe80::1%eth0", ""},
		{"no address", "nameserver resolver.example", ""},
		{"every address", "nameserver 0.0.0.0", ""},
		{"multicast", "nameserver 224.0.0.251", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if at, ok := nameServer(c.text); ok != (c.want != "") || ok && at.String() != c.want {
				t.Errorf("%v, %v, want %q", at, ok, c.want)
			}
		})
	}
}

// TestServeNames: without a network no name is found, whatever the entries say, and each is noted with
// the flag that opens it, or with the entry that denies it.
func TestServeNames(t *testing.T) {
	const noSuchName = 3 // NXDOMAIN (RFC 1035)
	policy, err := network.New(network.Config{Mode: network.Full,
		Entries: []network.Entry{{Pattern: "open.example"}, {Pattern: "ads.example", Deny: true}}})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(new(proxy.Proxy), &Sockets{Names: []net.PacketConn{socket}},
		&executor.Spec{Network: network.NewLive(policy)})
	for _, name := range []string{"open.example.", "ads.example.", "x.example.", "x.example."} {
		if code := ask(t, socket.LocalAddr().String(), name); code != noSuchName {
			t.Errorf("%s: %v", name, code)
		}
	}
	r := s.Close()
	var got []string
	for _, d := range r.Denials {
		got = append(got, d.Addr+" "+d.Rule+" "+d.Grant)
		if d.Source != sandbox.Proxied || d.NoGrant != (d.Grant == "") {
			t.Errorf("%+v", d)
		}
	}
	want := []string{"open.example network=none --allow-host open.example", "ads.example deny ads.example ",
		"x.example network=none --allow-host x.example"}
	if !slices.Equal(got, want) || len(r.Network) != 3 || r.Network[2].Count != 2 {
		t.Errorf("%q, %+v", got, r.Network)
	}
}

// ask asks a server for the IPv4 address of a name of two labels, and returns the code of the answer.
func ask(t *testing.T, server, name string) byte {
	t.Helper()
	q := []byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	q = append(q, 0, 1, 0, 1) // the name ends with its empty label
	conn, err := net.Dial("udp4", server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err = conn.Write(q); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 512)
	if n, err := conn.Read(answer); err != nil || n < len(q) || answer[1] != 7 {
		t.Fatalf("% x, %v", answer[:n], err)
	}
	return answer[3] & 0xf
}
