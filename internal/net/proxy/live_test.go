// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// TestRecheck changes the policy while tunnels are open: those that it refuses now end, and no others.
func TestRecheck(t *testing.T) {
	before := []string{"kept.example", "taken.example", "denied.example", "94.184.216.0/24"}
	l := newLab(t, makePolicy(t, network.Config{Mode: network.Full, Ask: true}, before...),
		listen(t, func(c net.Conn) { _, _ = io.Copy(c, c) }), func(l *lab) {
			l.zone.names = map[string][]string{}
			for _, name := range []string{"kept", "taken", "denied", "asked", "asked-and-denied", "moved"} {
				l.zone.names[name+".example"] = []string{"93.184.216.34"}
			}
			l.command.Ask = func(context.Context, network.Request) network.Decision {
				return network.Decision{Ruling: network.Allow, Reason: network.Allowed,
					Source: network.Decider}
			}
		})
	conns := map[string]*net.TCPConn{}
	for _, name := range []string{"kept", "taken", "denied", "asked", "asked-and-denied"} {
		host := name + ".example:443"
		conns[name] = l.established(fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host,
			host), connected)
	}
	l.mu.Lock()
	l.policy = makePolicy(t, network.Config{Mode: network.Full, Ask: true}, "kept.example", "denied.example",
		"!denied.example", "!asked-and-denied.example")
	l.mu.Unlock()
	l.service.Recheck()
	for name, conn := range conns {
		if _, err := io.WriteString(conn, "x"); err != nil && (name == "kept" || name == "asked") {
			t.Errorf("%s: %v", name, err)
		}
		n, err := conn.Read(make([]byte, 1))
		// A host that no entry names any more was not allowed by an answer.
		if stays := name == "kept" || name == "asked"; stays != (n == 1) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		_ = conn.CloseWrite()
	}
	for _, e := range l.settled(len(conns)) {
		want := Ended
		if strings.Contains(e.Host, "denied") || strings.HasPrefix(e.Host, "taken") {
			want = Revoked
		}
		if e.Kind == Closed && e.Cause != want {
			t.Errorf("%s: %s, want %s", e.Host, e.Cause, want)
		}
	}
}

// TestRecheckDial: a connection that was allowed, and not made yet when the policy changed, is not made.
func TestRecheckDial(t *testing.T) {
	l := newLab(t, full(t, "h.example"), listen(t, answerAny("late")), func(l *lab) {
		l.zone.names = map[string][]string{"h.example": {"93.184.216.34"}}
		dial := l.proxy.Dial
		if dial == nil {
			dial = l.dial
		}
		l.proxy.Dial = func(ctx context.Context, d *net.Dialer, kind, address string) (net.Conn, error) {
			conn, err := dial(ctx, d, kind, address)
			l.mu.Lock()
			l.policy = full(t, "!h.example")
			l.mu.Unlock()
			l.service.Recheck()
			return conn, err
		}
	})
	got := l.send("CONNECT h.example:443 HTTP/1.1\r\nHost: h.example:443\r\n\r\nhello")
	if strings.Contains(got, "200") || strings.Contains(got, "late") {
		t.Errorf("%q", got)
	}
	for _, e := range l.settled(1) {
		if e.Kind == Closed && (e.Up+e.Down > 0 || e.Cause != Revoked) {
			t.Errorf("%+v", e)
		}
	}
}
