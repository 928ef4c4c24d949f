// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/network"
)

// TestRequestRules: in the mode full, too, requests inside TLS to a host with rules are judged and
// changed, by HTTP/1.1 and HTTP/2. TLS to other hosts is not opened.
func TestRequestRules(t *testing.T) {
	rules := []network.RequestRule{{
		Name: "read", Hosts: []string{"a.example.com"}, Methods: []string{"GET"}, Paths: []string{"/open"},
		Query: []network.Pair{{Name: "q", Value: "1"}},
		Strip: []string{"x-secret"}, Set: []network.Pair{{Name: "x-team", Value: "blue"}},
	}}
	for _, h2 := range []bool{false, true} {
		for _, tt := range []struct {
			name, method, path string
			header             http.Header
			want               string // of what the server tells; empty for refused
		}{
			{"permitted", "GET", "/open/x?q=1", http.Header{"X-Secret": {"s"}, "X-Team": {"red", "green"}, "X-Y": {"z"}}, "|X-Team: blue|X-Y: z"},
			{"another path", "GET", "/shut?q=1", nil, ""},
			{"another path, spelled", "GET", "/open/%2e%2e/shut?q=1", nil, ""},
			{"another query", "GET", "/open?q=2", nil, ""},
			{"another method", "DELETE", "/open?q=1", nil, ""},
			{"another method, in a header", "GET", "/open?q=1", http.Header{"X-Http-Method-Override": {"DELETE"}}, ""},
		} {
			t.Run(fmt.Sprintf("%s/h2=%v", tt.name, h2), func(t *testing.T) {
				l := newLab(t, echo, func(c *network.Config, _ *proxy.Command) {
					c.Mode,
						c.Rules = network.Full, rules
				})
				q, err := http.NewRequest(tt.method, "https://a.example.com"+tt.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				for name, values := range tt.header {
					q.Header[name] = values
				}
				res, err := l.client(h2).Do(q)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(res.Body)
				res.Body.Close()
				refused, _ := l.told()
				if tt.want != "" {
					if res.StatusCode != 200 || !strings.HasSuffix(string(text), tt.want) ||
						strings.Contains(string(text), "Secret") || len(refused) > 0 {
						t.Errorf("%d %s, refused %q", res.StatusCode, text, refused)
					}
					return
				}
				if res.StatusCode != 403 || res.Header.Get("x-proxy-error") != "blocked-by-mitm-hook" ||
					l.dialed > 1 ||
					!strings.Contains(string(text),
						`"message":"HTTPS request denied by MITM hook policy."`) ||
					!slices.Equal(refused, []string{"a.example.com:443 mitm_hook_denied " + tt.method}) {
					t.Errorf("%d %s, refused %q", res.StatusCode, text, refused)
				}
			})
		}
	}
	t.Run("another host", func(t *testing.T) {
		l := newLab(t, echo, func(c *network.Config, _ *proxy.Command) {
			c.Mode,
				c.Rules = network.Full, rules
		})
		conn, _, status := l.connect("example.com:443")
		if status != 200 {
			t.Fatal(status)
		}
		if name := issuer(t, conn); strings.Contains(name, "sallyport") {
			t.Errorf("its certificate is of %s", name)
		}
	})
}

// TestOverriddenMethod: the mode limited refuses a method that a header asks for in place of GET.
func TestOverriddenMethod(t *testing.T) {
	l := newLab(t, echo)
	for method, status := range map[string]int{"DELETE": 403, "head": 200} {
		q, _ := http.NewRequest("GET", "https://example.com/", nil)
		q.Header.Set("X-HTTP-Method-Override", method)
		res, err := l.client(true).Do(q)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
}

// issuer is who has signed the certificate of what answers.
func issuer(t *testing.T, conn net.Conn) string {
	t.Helper()
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, ServerName: "example.com"}) //nolint:gosec // it is looked at
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c.ConnectionState().PeerCertificates[0].Issuer.String()
}

// TestAskedInside: an answer that allows a host counts for the requests inside its TLS, one by one, as
// far as the mode permits them, and is asked for once.
func TestAskedInside(t *testing.T) {
	asked := 0
	l := newLab(t, echo, func(c *network.Config, command *proxy.Command) {
		c.Ask = true
		command.Ask = func(context.Context, network.Request) network.Decision {
			asked++
			return network.Decision{Ruling: network.Allow, Reason: network.Allowed, Source: network.Decider}
		}
	})
	l.policy = makePolicy(t, network.Config{Mode: network.Limited, Inspector: l.interceptor, Ask: true})
	client := l.client(true)
	for _, tt := range []struct {
		method string
		status int
	}{{"GET", 200}, {"POST", 403}, {"HEAD", 200}} {
		q, _ := http.NewRequest(tt.method, "https://example.com/", nil)
		res, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != tt.status {
			t.Errorf("%s: %d", tt.method, res.StatusCode)
		}
	}
	client.CloseIdleConnections()
	if refused, _ := l.told(); !slices.Equal(refused,
		[]string{"example.com:443 method_not_allowed POST"}) || asked != 1 {
		t.Errorf("%q after %d questions", refused, asked)
	}
}
