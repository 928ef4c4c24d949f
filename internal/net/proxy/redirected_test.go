// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// ledFrom has connections come from an authority, as if they had been redirected.
func ledFrom(t testing.TB, authority string) func(*lab) {
	t.Helper()
	host, port, err := network.ParseAuthority(authority, 0)
	if err != nil {
		t.Fatal(err)
	}
	return func(l *lab) {
		l.from = func(net.Conn) (network.Host, uint16, error) { return host, port, nil }
	}
}

// led is connect, or nil if the connection was reset already.
func (l *lab) led() *net.TCPConn {
	l.t.Helper()
	conn, err := net.Dial("tcp", l.addr)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(bound))
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		l.t.Fatalf("%T", conn)
	}
	return tcp
}

// TestRedirectedCases: a connection that is redirected is decided as the same one at the proxy.
func TestRedirectedCases(t *testing.T) {
	origin := listen(t, answerAny(okResponse))
	rows := readCases(t)
	policies := rows[0].Policies
	played := 0
	for _, row := range rows[1:] {
		authority, path := row.Req.Target, ""
		if row.Req.Via == "http" {
			var bad network.Reason
			if authority, path, bad = parseTarget(row.Req.Target); bad != "" {
				continue // a client that knows of no proxy cannot send that
			}
		}
		host, port, err := network.ParseAuthority(authority, httpPort)
		if err != nil || len(row.Req.TargetBase64) > 0 || row.Expect.Decision == network.Reject ||
			row.Expect.Reason == "config_error" {
			continue
		}
		if row.Req.Via != "http" && port == httpPort {
			continue // there HTTP is looked into
		}
		played++
		t.Run(row.ID+" "+row.Note, func(t *testing.T) {
			given := policies[row.Policy]
			entries := slices.Clone(given.Allow)
			for _, e := range given.Deny {
				entries = append(entries, "!"+e)
			}
			l := newLab(t, makePolicy(t, network.Config{Mode: given.Mode, AllowPrivate: given.AllowLocal},
				entries...), origin, func(l *lab) {
				l.from = func(net.Conn) (network.Host, uint16, error) { return host, port, nil }
			})
			if row.Req.Via != "http" && given.Mode == network.Limited && row.Req.SNI == "" {
				row.Req.SNI = host.String() // TLS; other text would be the beginning of a request
			}
			got := network.Deny
			if row.Req.Via != "http" || port != httpPort && given.Mode != network.Limited {
				if conn := l.led(); conn != nil {
					got = l.playTunnel(row, conn, conn)
				}
			} else {
				method := row.Req.Method
				if method == "" {
					method = "GET"
				}
				text := method + " " + originForm(method, path) + " HTTP/1.1\r\nHost: " + authority +
					"\r\nConnection: close\r\n\r\n"
				if answer := l.send(text); strings.HasPrefix(answer, "HTTP/1.1 200 ") {
					got = network.Allow
				} else if !strings.HasPrefix(answer, "HTTP/1.1 403 ") {
					t.Errorf("answer %q", answer)
				}
			}
			if got != row.Expect.Decision {
				t.Errorf("the client sees %v, want %v", got, row.Expect.Decision)
			}
		})
	}
	if played < 100 {
		t.Errorf("only %d rows", played)
	}
}

// TestRedirectedHTTP: each request of a connection is judged by the host that it names.
func TestRedirectedHTTP(t *testing.T) {
	origin := listen(t, answerAny(okResponse))
	for _, c := range []struct{ name, request, status, host string }{
		{"the same host", "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "200", "api.example.com"},
		{"in other letters", "GET / HTTP/1.1\r\nHost: API.example.com.:80\r\n\r\n", "200", "api.example.com"},
		{"another host", "GET / HTTP/1.1\r\nHost: evil.example.net\r\n\r\n", "403", ""},
		{"another host that is allowed", "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n", "200", "www.example.com"},
		{"another port", "GET / HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", "400", ""},
		{"no host", "GET / HTTP/1.1\r\n\r\n", "400", ""},
		{"no host, old", "GET / HTTP/1.0\r\n\r\n", "200", "api.example.com"},
		{"for a proxy", "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "400", ""},
		{"a tunnel", "CONNECT evil.example.net:443 HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "400", ""},
		{"not a host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400", ""},
		{"malformed", "GET / HTTP/1.1\nHost: api.example.com\n\n", "400", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, full(t, "*.example.com"), origin, ledFrom(t, "api.example.com:80"))
			if answer := l.send(c.request); !strings.HasPrefix(answer, "HTTP/1.1 "+c.status+" ") {
				t.Errorf("answer %q, want %s", answer, c.status)
			}
			want := []string{}
			if c.host != "" {
				want = append(want, c.host)
			}
			if got := l.zone.questions(); !slices.Equal(got, want) {
				t.Errorf("resolved %q, want %q", got, want)
			}
		})
	}
}

// TestRedirectedReset: what is refused without HTTP is reset at once, and nothing is dialed.
func TestRedirectedReset(t *testing.T) {
	for name, from := range map[string]func(*lab){
		"refused": ledFrom(t, "evil.example.net:443"),
		"private": ledFrom(t, "10.0.0.1:443"),
		"unknown": func(l *lab) {
			l.from = func(net.Conn) (network.Host, uint16, error) {
				return network.Host{}, 0,
					errors.New("it is not known")
			}
		},
		"dead": ledFrom(t, "api.example.com:443"),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, full(t, "*.example.com"), "", from)
			if conn := l.led(); conn != nil {
				if b, err := io.ReadAll(conn); len(b) > 0 || err == nil {
					t.Errorf("read %q, %v; want a reset", b, err)
				}
			}
			l.told() // it has ended
			if want := name == "dead"; want != (len(l.dialed) == 1) {
				t.Errorf("dialed %q", l.dialed)
			}
		})
	}
}

// TestRedirectedServerFirst: a server that speaks first is not held up by a client that waits for it.
func TestRedirectedServerFirst(t *testing.T) {
	origin := listen(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "220 welcome\r\n") })
	for _, port := range []string{"25", "80"} {
		l := newLab(t, full(t, "mail.example.com"), origin, ledFrom(t, "mail.example.com:"+port))
		if b, err := io.ReadAll(l.connect()); string(b) != "220 welcome\r\n" || err != nil {
			t.Errorf("port %s: %q, %v", port, b, err)
		}
	}
}
