// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
)

// TestSOCKS has the replies to messages that are no request for a connection.
func TestSOCKS(t *testing.T) {
	const greeting, ok, name = "\x05\x01\x00", "\x05\x00", "\x03\x0fapi.example.com\x00\x50"
	reply := func(code string) string { return ok + "\x05" + code + "\x00\x01\x00\x00\x00\x00\x00\x00" }
	for _, test := range []struct{ name, sent, want string }{
		{"no method", "\x05\x00", "\x05\xff"},
		{"password only", "\x05\x01\x02", "\x05\xff"},
		{"several methods", "\x05\x03\x02\x01\x00\x05\x02\x00" + name, reply("\x07")},
		{"BIND", greeting + "\x05\x02\x00" + name, reply("\x07")},
		{"unknown command", greeting + "\x05\x09\x00" + name, reply("\x07")},
		{"UDP without a socket", greeting + "\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", reply("\x07")},
		{"unknown address", greeting + "\x05\x01\x00\x02\x00\x50", reply("\x08")},
		{"another version", greeting + "\x04\x01\x00" + name, reply("\x01")},
		{"reserved byte", greeting + "\x05\x01\x01" + name, reply("\x01")},
		{"empty name", greeting + "\x05\x01\x00\x03\x00\x00\x50", reply("\x01")},
		{"port 0", greeting + "\x05\x01\x00\x03\x0fapi.example.com\x00\x00", reply("\x01")},
		{"miss", greeting + "\x05\x01\x00\x03\x09evil.test\x00\x50", reply("\x02")},
		{"no address", greeting + "\x05\x01\x00\x03\x10dead.example.com\x00\x50", reply("\x04")},
		{"IPv6 in a name", greeting + "\x05\x01\x00\x03\x03::1\x00\x50", reply("\x02")},
		{"IPv6 in brackets in a name", greeting + "\x05\x01\x00\x03\x05[::1]\x00\x50", reply("\x01")},
		{"IPv4 as IPv6", greeting + "\x05\x01\x00\x04" + strings.Repeat("\x00", 10) + "\xff\xff\x7f\x00\x00\x01\x00\x50", reply("\x02")},
		{"cut", greeting + "\x05\x01\x00\x03\x0fapi", ok},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, full(t, "*.example.com"), "")
			if got := l.send(test.sent); got != test.want {
				t.Errorf("% x, want % x", got, test.want)
			}
			if l.told(); len(l.dialed) > 0 {
				t.Errorf("dialed %q", l.dialed)
			}
		})
	}
}

// A movedConn is a UDP socket of loopback that seems to be elsewhere: what is sent to an address of
// the outside goes to a port of loopback, and what comes back seems to come from that address.
type movedConn struct {
	net.PacketConn
	server net.Addr

	mu   sync.Mutex
	last net.Addr
	sent []string
}

func (m *movedConn) WriteTo(p []byte, to net.Addr) (int, error) {
	m.mu.Lock()
	m.last = to
	m.sent = append(m.sent, to.String())
	m.mu.Unlock()
	return m.PacketConn.WriteTo(p, m.server)
}

func (m *movedConn) ReadFrom(p []byte) (int, net.Addr, error) {
	n, from, err := m.PacketConn.ReadFrom(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && from.String() == m.server.String() {
		from = m.last
	}
	return n, from, err
}

// targets returns where was sent to.
func (m *movedConn) targets() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.sent)
}

func listenUDP(t *testing.T) net.PacketConn {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(bound))
	return conn
}

// newUDPLab serves UDP associations. Datagrams lead to a server that sends them back.
func newUDPLab(t *testing.T, policy *network.Policy) (*lab, *movedConn) {
	server := listenUDP(t)
	var group sync.WaitGroup
	group.Go(func() {
		p := make([]byte, maxDatagram)
		for {
			n, from, err := server.ReadFrom(p)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(p[:n], from)
		}
	})
	t.Cleanup(func() { server.Close(); group.Wait() })
	outside := &movedConn{PacketConn: listenUDP(t), server: server.LocalAddr()}
	return newLab(t, policy, "", func(l *lab) {
		l.command.PacketListener = func() (net.PacketConn, error) {
			return net.ListenPacket("udp",
				"127.0.0.1:0")
		}
		l.proxy.ListenUDP = func() (net.PacketConn, error) { return outside, nil }
	}), outside
}

// associate asks for an association and returns its connection and its address.
func (l *lab) associate() (net.Conn, net.Addr) {
	l.t.Helper()
	conn := l.connect()
	_, _ = io.WriteString(conn, "\x05\x01\x00\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00")
	p := make([]byte, 12)
	if _, err := io.ReadFull(conn, p); err != nil || string(p[:6]) != "\x05\x00\x05\x00\x00\x01" {
		l.t.Fatalf("% x, %v", p, err)
	}
	return conn, &net.UDPAddr{IP: p[6:10], Port: int(p[10])<<8 | int(p[11])}
}

const toAPI = "\x00\x00\x00\x03\x0fapi.example.com\x01\xbb"

// exchange sends a datagram and returns what comes back.
func exchangeUDP(t *testing.T, conn net.PacketConn, to net.Addr, sent string) string {
	t.Helper()
	if _, err := conn.WriteTo([]byte(sent), to); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, maxDatagram)
	n, _, err := conn.ReadFrom(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(p[:n])
}

// TestUDP sends datagrams that are refused, each before one that is allowed: only that comes back.
func TestUDP(t *testing.T) {
	const back = "\x00\x00\x00\x01\x5d\xb8\xd8\x22\x01\xbb"
	for _, test := range []struct {
		name, refused string
		reason        network.Reason // empty: nothing is told
	}{
		{"miss", "\x00\x00\x00\x03\x09evil.test\x01\xbbx", network.NotAllowed},
		{"resolver", "\x00\x00\x00\x01\x08\x08\x08\x08\x00\x35x", network.NotAllowed},
		{"resolver of this machine", "\x00\x00\x00\x01\x7f\x00\x00\x35\x00\x35x", network.NotAllowedLocal},
		{"name with a private address", "\x00\x00\x00\x03\x10loop.example.com\x01\xbbx", network.NotAllowedLocal},
		{"denied", "\x00\x00\x00\x03\x12denied.example.com\x01\xbbx", network.Denied},
		{"malformed name", "\x00\x00\x00\x03\x04a..b\x01\xbbx", network.InvalidHost},
		{"port 0", "\x00\x00\x00\x03\x0fapi.example.com\x00\x00x", network.InvalidHost},
		{"fragment", "\x00\x00\x01" + toAPI[3:] + "x", ""},
		{"reserved", "\x00\x01\x00" + toAPI[3:] + "x", ""},
		{"cut", "\x00\x00\x00\x03\x0fapi", ""},
		{"empty", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, outside := newUDPLab(t, full(t, "*.example.com", "!denied.example.com"))
			control, relay := l.associate()
			conn := listenUDP(t)
			for range 3 {
				if _, err := conn.WriteTo([]byte(test.refused), relay); err != nil {
					t.Fatal(err)
				}
			}
			for _, text := range []string{"one", "two"} {
				if got := exchangeUDP(t, conn, relay, toAPI+text); got != back+text {
					t.Errorf("%q came back, want %q", got, back+text)
				}
			}
			control.Close()
			l.checkUDP(outside, test.reason)
		})
	}
}

// checkUDP looks at what was told and sent: one refusal, however often, and one flow.
func (l *lab) checkUDP(outside *movedConn, reason network.Reason) {
	l.t.Helper()
	var refused, ended int
	for _, e := range l.settled(1) {
		switch {
		case e.Kind == Closed:
			ended++
			if e.Up != 6 || e.Down != 6 || e.Resolved != netip.MustParseAddrPort("93.184.216.34:443") {
				l.t.Errorf("told %+v", e)
			}
		case e.Decision.Ruling != network.Allow:
			refused++
			if e.Decision.Reason != reason {
				l.t.Errorf("told %+v", e)
			}
		}
	}
	if want := map[bool]int{true: 0, false: 1}[reason == ""]; refused != want || ended != 1 {
		l.t.Errorf("%d refusals and %d ends, want %d and 1", refused, ended, want)
	}
	if sent := outside.targets(); len(sent) != 2 {
		l.t.Errorf("sent to %q", sent)
	}
}

// TestUDPStrangers has datagrams of another sender inside, and of one outside that nothing was
// sent to: they are dropped.
func TestUDPStrangers(t *testing.T) {
	l, outside := newUDPLab(t, full(t, "*.example.com"))
	_, relay := l.associate()
	conn, stranger := listenUDP(t), listenUDP(t)
	exchangeUDP(t, conn, relay, toAPI+"one")
	if _, err := stranger.WriteTo([]byte(toAPI+"stranger"), relay); err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.WriteTo([]byte("stranger"), outside.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if got := exchangeUDP(t, conn, relay, toAPI+"two"); strings.Contains(got, "stranger") {
		t.Errorf("got %q", got)
	}
	if sent := outside.targets(); len(sent) != 2 {
		t.Errorf("sent to %q", sent)
	}
}

// TestUDPTightened has a policy that changes: the next datagram is judged by it.
func TestUDPTightened(t *testing.T) {
	l, outside := newUDPLab(t, full(t, "*.example.com"))
	_, relay := l.associate()
	conn := listenUDP(t)
	exchangeUDP(t, conn, relay, toAPI+"one")
	l.mu.Lock()
	l.policy = full(t, "other.example.com")
	l.mu.Unlock()
	if _, err := conn.WriteTo([]byte(toAPI+"two"), relay); err != nil {
		t.Fatal(err)
	}
	exchangeUDP(t, conn, relay, "\x00\x00\x00\x03\x11other.example.com\x01\xbbthree")
	if sent := outside.targets(); len(sent) != 2 {
		t.Errorf("sent to %q", sent)
	}
}

// TestUDPFlows has more hosts than one association remembers.
func TestUDPFlows(t *testing.T) {
	l, _ := newUDPLab(t, full(t, "api.example.com"))
	control, relay := l.associate()
	conn := listenUDP(t)
	for i := range maxFlows + 50 {
		exchangeUDP(t, conn, relay, toAPI[:len(toAPI)-2]+string([]byte{2, byte(i)})+"x")
		exchangeUDP(t, conn, relay, toAPI[:len(toAPI)-2]+string([]byte{byte(3 + i>>8), byte(i)})+"x")
	}
	count := func(events []Event) (decided, ended int) {
		for _, e := range events {
			if e.Kind == Closed {
				ended++
			} else {
				decided++
			}
		}
		return decided, ended
	}
	l.mu.Lock()
	decided, ended := count(l.events)
	l.mu.Unlock()
	if decided < maxFlows+50 || decided-ended != maxFlows {
		t.Errorf("%d decisions, %d ends: more than %d are remembered", decided, ended, maxFlows)
	}
	control.Close()
	if decided, ended := count(l.told()); decided != ended {
		t.Errorf("%d decisions, %d ends", decided, ended)
	}
}

// TestBurst makes many connections at once: none is lost.
func TestBurst(t *testing.T) {
	connections, atOnce := 200, 50
	if testenv.IsLong() {
		connections, atOnce = 10_000, 200
	}
	l := newLab(t, full(t, "api.example.com"), listen(t, answerAny(okResponse)))
	var group sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for range connections {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			conn, err := dialFrom(l.addr).Dial("tcp", l.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(bound))
			_, _ = io.WriteString(conn, "GET http://api.example.com/ HTTP/1.0\r\n\r\n")
			if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	group.Wait()
	if e := l.told(); len(e) != 2*connections {
		t.Errorf("%d events, want %d", len(e), 2*connections)
	}
}
