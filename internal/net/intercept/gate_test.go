// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/network"
)

// withSecret has a credential for a host. All letters are small ones, as those of some tokens are.
func withSecret(t *testing.T,
	host string) (change func(*network.Config, *proxy.Command), value, dummy string) {
	t.Helper()
	value = "tok_0123456789abcdef0123456789abcdef"
	set, err := NewCredentials([]Credential{{Name: "one", Env: "ONE", Value: []byte(value),
		Hosts: []string{host}}}, func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	return full(set), strings.Clone(value), set.Dummy("one")
}

// answering serves TLS and answers each connection with text, whatever it gets.
func answering(t *testing.T, text string) (addr string, by *Interceptor) {
	t.Helper()
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return a.leaf(h.ServerName) }})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(bound))
				if _, err := conn.Read(make([]byte, 64<<10)); err == nil {
					_, _ = io.WriteString(conn, text)
				}
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), trusting(t, a.cert)
}

// TestErrorTexts: no text of ours has anything of what a server has sent, which may be the value of a
// credential.
func TestErrorTexts(t *testing.T) {
	for name, response := range map[string]string{
		"version":           "@ 200 OK\r\n\r\n",
		"status":            "HTTP/1.1 @ OK\r\n\r\n",
		"header":            "HTTP/1.1 200 OK\r\n@\r\n\r\n",
		"name":              "HTTP/1.1 200 OK\r\n@ : x\r\n\r\n",
		"framing":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: @\r\n\r\n",
		"length":            "HTTP/1.1 200 OK\r\nContent-Length: @\r\n\r\n",
		"two lengths":       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: @\r\n\r\n",
		"coding":            "HTTP/1.1 200 OK\r\nContent-Encoding: @\r\nContent-Length: 0\r\n\r\n",
		"protocol":          "HTTP/1.1 101 OK\r\nConnection: upgrade\r\nUpgrade: @\r\n\r\n",
		"interim":           "HTTP/1.1 103 OK\r\nLink: @\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"trailers":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: @\r\n\r\n",
		"trailer's name":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: @\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"no trailer's name": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X, a @\r\n\r\n2\r\nok\r\n0\r\nX: x\r\n\r\n",
		"chunks":            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n@\r\n\r\n",
		"extension":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;@\r\nok\r\n0\r\n\r\n",
		"reason":            "HTTP/1.1 200 @\r\nContent-Length: 0\r\n\r\n",
		"body":              "HTTP/1.1 200 OK\r\n\r\n@",
		"gzip of none":      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n@",
		"not HTTP":          "@",
		"location":          "HTTP/1.1 302 OK\r\nLocation: https://@/\r\nContent-Length: 0\r\n\r\n",
		"bad location":      "HTTP/1.1 302 OK\r\nLocation: https://%zz@/\r\nContent-Length: 0\r\n\r\n",
		"after the end":     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n@ unasked",
	} {
		t.Run(name, func(t *testing.T) {
			change, value, _ := withSecret(t, "example.com")
			addr, by := answering(t, strings.ReplaceAll(response, "@", value))
			l := newLabTo(t, addr, by, change)
			c := l.open("http/1.1")
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
			out, _ := io.ReadAll(c)
			if strings.Contains(strings.ToLower(string(out)), value) {
				t.Errorf("%q", out)
			}
		})
	}
}

// TestFronting: TLS of another host at the address of one with rules or a credential is opened; requests
// in it are for that host, and responses have no value. TLS at another address passes.
func TestFronting(t *testing.T) {
	for _, tt := range []struct {
		name, sends string // as Host
		rule        bool
		status      int
	}{
		{"rules, its own host", "b.example.com", true, 200},
		{"rules, the ruled host", "example.com", true, 400},
		{"a credential, its own host", "b.example.com", false, 200},
		{"a credential, the other host", "example.com", false, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change, value, dummy := withSecret(t, "example.com")
			if tt.rule {
				change = func(c *network.Config, _ *proxy.Command) {
					c.Mode, c.Rules = network.Full,
						[]network.RequestRule{{Name: "r", Hosts: []string{"example.com"},
							Paths: []string{"/mine"}}}
				}
			}
			addr, by := answering(t, "HTTP/1.1 200 OK\r\nX-Last: "+value+
				"\r\nConnection: close\r\n\r\n"+value)
			l := newLabTo(t, addr, by, change)
			q, _ := http.NewRequest("GET", "https://b.example.com/other", nil)
			q.Host = tt.sends
			res, err := l.client(false).Do(q)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			all := fmt.Sprint(res.Header) + string(text)
			if res.StatusCode != tt.status || !tt.rule &&
				(strings.Contains(all, value) || tt.status == 200 && strings.Count(all, dummy) != 2) {
				t.Errorf("%d %s", res.StatusCode, all)
			}
		})
	}
}

// TestRuledHeaders: what a rule sets is there whatever Connection names, and what it drops is not there
// in another spelling, nor behind the body, by both versions of HTTP.
func TestRuledHeaders(t *testing.T) {
	rule := network.RequestRule{Name: "r", Hosts: []string{"example.com"}, Strip: []string{"X-Role"},
		Set: []network.Pair{{Name: "X-User", Value: "agent"}}}
	for _, tt := range []struct{ name, head string }{
		{"named by Connection", "Connection: close, X-User\r\n"},
		{"named by Connection, in capitals", "Connection: x-uSER, close\r\n"},
		{"in another spelling", "X_Role: admin\r\nx_user: admin\r\nX.Role: admin\r\nX-Role.: admin\r\nConnection: close\r\n"},
		{"twice", "X-User: admin\r\nX-User: admin\r\nX-Role: admin\r\nConnection: close\r\n"},
		{"behind the body", "Trailer: X-Role, X-User\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nhi\r\n0\r\nX-Role: admin\r\nX-User: admin\r\n"},
		{"for one hop", "Keep-Alive: admin\r\nProxy-Connection: admin\r\nProxy-Authorization: admin\r\nTE: admin\r\nConnection: close\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				fmt.Fprintf(w, "%q %q", headers(r.Header), headers(r.Trailer))
			}), func(c *network.Config, _ *proxy.Command) {
				c.Mode, c.Rules = network.Full, []network.RequestRule{rule}
			})
			c := l.open("http/1.1")
			_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: example.com\r\n"+tt.head+"\r\n")
			out, _ := io.ReadAll(c)
			if text := string(out); strings.Contains(text, "admin") ||
				!strings.Contains(text, "X-User: agent") {
				t.Errorf("%s", text)
			}
		})
	}
}

// plainly is a server that speaks HTTP/1.1 alone and tells the host and the target that it took.
func plainly(t *testing.T, change func(*network.Config, *proxy.Command)) *lab {
	t.Helper()
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "took %s %s %q", r.Host, r.RequestURI, headers(r.Header))
	}))
	silent(origin)
	origin.StartTLS()
	t.Cleanup(origin.Close)
	return newLabTo(t, origin.Listener.Addr().String(), trusting(t, origin.Certificate()), change)
}

// TestTargets: no target of a request inside TLS leads to another host of the same server.
func TestTargets(t *testing.T) {
	for _, target := range []string{
		"http://b.example.com/", "https://b.example.com/", "x:http://b.example.com/",
		"https:https://b.example.com/", "x:/a", "https:/a", "https:a",
		"//b.example.com/", "*",
	} {
		t.Run(target, func(t *testing.T) {
			c := plainly(t, func(c *network.Config,
				_ *proxy.Command) {
				c.Mode = network.Limited
			}).open("http/1.1")
			_, _ = io.WriteString(c, "GET "+target+
				" HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
			out, _ := io.ReadAll(c)
			took := strings.HasPrefix(target, "/") // as it is
			if got := strings.Contains(string(out), "took example.com "+target); got != took ||
				strings.Contains(string(out), "took") != took {
				t.Errorf("%s", out)
			}
		})
	}
}

// TestUpgrades: what a server switches to has no requests of its own, which no rule would see.
func TestUpgrades(t *testing.T) {
	for _, tt := range []struct {
		lines  string
		passes bool
	}{
		{"Upgrade: websocket\r\n", true},
		{"Upgrade: SPDY/3.1\r\n", true},
		{"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", false},
		{"Upgrade: H2C\r\n", false},
		{"Upgrade: websocket, h2c\r\n", false},
		{"Upgrade: websocket\r\nUpgrade: h2c\r\n", false},
		{"Upgrade: HTTP/2.0\r\n", false},
		{"Upgrade: TLS/1.2, HTTP/1.1\r\n", false},
	} {
		t.Run(tt.lines, func(t *testing.T) {
			c := plainly(t, func(c *network.Config, _ *proxy.Command) {
				c.Mode, c.Rules = network.Full,
					[]network.RequestRule{{Name: "r", Hosts: []string{"example.com"},
						Paths: []string{"/mine"}}}
			}).open("http/1.1")
			_, _ = io.WriteString(c,
				"GET /mine HTTP/1.1\r\nHost: example.com\r\nConnection: close, Upgrade\r\n"+tt.lines+"\r\n")
			out, _ := io.ReadAll(c)
			if !strings.Contains(string(out), "took") ||
				strings.Contains(string(out), "Upgrade: ") != tt.passes {
				t.Errorf("%s", out)
			}
		})
	}
}
