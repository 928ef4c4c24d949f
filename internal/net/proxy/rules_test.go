// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// ruled is the mode full with a rule for requests to api.example.com.
func ruled(t testing.TB, entries ...string) *network.Policy {
	t.Helper()
	return makePolicy(t, network.Config{Mode: network.Full, Inspector: opener{},
		Rules: []network.RequestRule{{
			Name: "read", Hosts: []string{"api.example.com"}, Methods: []string{"GET"},
			Paths: []string{"/open"},
			Strip: []string{"X-Secret"}, Set: []network.Pair{{Name: "X-Team", Value: "blue"}},
		}}}, entries...)
}

// An opener would open TLS.
type opener struct{}

func (opener) InspectsTLS() {}

// TestPlainRules: requests over plain HTTP are judged and changed by request rules, whichever way they come.
func TestPlainRules(t *testing.T) {
	const refused = "HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\nx-proxy-error: blocked-by-mitm-hook\r\n"
	for _, tt := range []struct {
		name, line, headers, want string
		sees                      string // what the server gets; empty for nothing
	}{
		{"permitted", "GET @/open/x?y", "x-secret: 1\r\nX-TEAM: red\r\nAccept: z\r\n", "HTTP/1.1 200", "GET /open/x?y HTTP/1.1\r\nHost: api.example.com\r\nAccept: z\r\nConnection: close\r\nX-Team: blue\r\n\r\n"},
		{"named by Connection", "GET @/open", "Connection: X-Team, accept\r\nAccept: z\r\n", "HTTP/1.1 200", "GET /open HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nX-Team: blue\r\n\r\n"},
		{"in other spellings", "GET @/open", "x_secret: 1\r\nX.TEAM: red\r\nX-Team.: red\r\n", "HTTP/1.1 200", "GET /open HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nX-Team: blue\r\n\r\n"},
		{"another path, in a header", "GET @/open", "X-Rewrite_URL: /shut\r\n", refused, ""},
		{"another path", "GET @/shut", "", refused, ""},
		{"another path, spelled", "GET @/open/%2e%2e/shut", "", refused, ""},
		{"another method", "POST @/open", "Content-Length: 1\r\n", refused, ""},
		{"another method, in a header", "GET @/open", "x-http-method-override: PUT\r\n", refused, ""},
	} {
		for _, way := range []string{"proxy", "redirected"} {
			t.Run(tt.name+"/"+way, func(t *testing.T) {
				got := make(chan string, 1)
				origin := listen(t, func(c net.Conn) {
					p := make([]byte, 1000)
					n, _ := c.Read(p)
					got <- string(p[:n])
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				})
				at := "http://api.example.com"
				var change []func(*lab)
				if way == "redirected" {
					at = ""
					change = append(change, func(l *lab) {
						l.from = func(net.Conn) (network.Host, uint16, error) {
							return mustHost(t,
								"api.example.com"), 80, nil
						}
					})
				}
				l := newLab(t, ruled(t, "*.example.com"), origin, change...)
				answer := l.send(strings.ReplaceAll(tt.line, "@", at) +
					" HTTP/1.1\r\nHost: api.example.com\r\n" + tt.headers + "\r\n")
				if !strings.HasPrefix(answer, tt.want) {
					t.Errorf("%q", answer)
				}
				sees := ""
				select {
				case sees = <-got:
				default:
				}
				if sees != tt.sees {
					t.Errorf("the server got %q", sees)
				}
				if tt.sees == "" && (!strings.Contains(answer, `"reason":"mitm_hook_denied"`) ||
					!strings.Contains(answer, `"rule":"rule read"`)) {
					t.Errorf("%q", answer)
				}
			})
		}
	}
}

// TestRuledTunnels: nothing goes through a tunnel to a host with request rules in which no requests are seen,
// nor does TLS for it through a tunnel to another host.
func TestRuledTunnels(t *testing.T) {
	for _, tt := range []struct {
		name, to, first string
		want            network.Reason
	}{
		{"no TLS", "api.example.com:443", "SSH-2.0-client\r\n", network.MITMRequired},
		{"a request", "api.example.com:8080", "DELETE /x HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", network.MITMRequired},
		{"TLS that cannot be opened", "api.example.com:443", string(clientHello(t, "api.example.com")), network.MITMRequired},
		{"TLS for it to another host", "www.example.net:443", string(clientHello(t, "api.example.com")), network.SNIMismatch},
		{"TLS for another host", "www.example.net:443", string(clientHello(t, "www.example.net")), ""},
		{"TLS for another host at its address", "other.example.com:443", string(clientHello(t, "other.example.com")), network.MITMRequired},
		{"TLS for another host at its address, without a name", "93.184.216.34:443", string(clientHello(t, "")), network.MITMRequired},
		{"another protocol to another host at its address", "other.example.com:443", "SSH-2.0-client\r\n", network.MITMRequired},
		{"another protocol to another host", "www.example.net:443", "SSH-2.0-client\r\n", ""},
		{"a request for it to another host", "www.example.net:8080", "GET /open HTTP/1.1\r\nHost: api.example.com\r\n\r\n", network.HostMismatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan []byte, 1)
			l := newLab(t, ruled(t, "*.example.com", "*.example.net", "93.184.216.34"),
				listen(t, func(c net.Conn) {
					all, _ := io.ReadAll(c)
					got <- all
				}))
			conn := l.established("CONNECT "+tt.to+" HTTP/1.1\r\nHost: "+tt.to+"\r\n\r\n", connected)
			_, _ = io.WriteString(conn, tt.first)
			_ = conn.CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			sent, reason := tt.first, network.Reason("")
			if tt.want != "" {
				sent = ""
			}
			for _, e := range l.told() {
				if e.Decision.Ruling == network.Deny {
					reason = e.Decision.Reason
				}
			}
			if text := <-got; string(text) != sent || reason != tt.want {
				t.Errorf("the server got %q, refused for %q", text, reason)
			}
		})
	}
}

// TestRuledLater: a rule, or the mode limited, that comes while a tunnel is open ends it, if it would
// look into it.
func TestRuledLater(t *testing.T) {
	for name, later := range map[string]*network.Policy{
		"a rule":       ruled(t, "*.example.com"),
		"mode limited": makePolicy(t, network.Config{Mode: network.Limited, Inspector: opener{}}, "*.example.com"),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, full(t, "*.example.com"), listen(t, func(c net.Conn) { _, _ = io.Copy(c, c) }))
			conn := l.established(connectAPI, connected)
			p := make([]byte, 1)
			if _, err := io.WriteString(conn, "x"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, p); err != nil {
				t.Fatal(err)
			}
			l.mu.Lock()
			l.policy = later
			l.mu.Unlock()
			l.service.Recheck()
			_, _ = io.WriteString(conn, "y")
			if n, err := conn.Read(p); err == nil {
				t.Errorf("%d bytes went through", n)
			}
			for _, e := range l.settled(1) {
				if e.Kind == Closed && e.Cause != Revoked {
					t.Errorf("%s", e.Cause)
				}
			}
		})
	}
}
