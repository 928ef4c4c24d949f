// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/network"
)

// TestMethods: reading requests pass, others are answered with the reason, by both versions of HTTP.
func TestMethods(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		for _, tt := range []struct {
			method string
			passes bool
		}{
			{"GET", true}, {"HEAD", true}, {"OPTIONS", true}, {"POST", false}, {"PUT", false}, {"DELETE", false}, {"PATCH", false},
			{"TRACE", false}, {"get", false}, {"PROPFIND", false},
		} {
			t.Run(fmt.Sprintf("%s/h2=%v", tt.method, h2), func(t *testing.T) {
				l := newLab(t, echo)
				var body io.Reader
				if !tt.passes {
					body = strings.NewReader("data")
				}
				q, _ := http.NewRequest(tt.method, "https://a.example.com/x%2Fy?b=1;c&d=%zz", body)
				q.Header.Set("User-Agent", "")
				q.Header.Set("X-Forwarded-For", "10.0.0.1")
				res, err := l.client(h2).Do(q)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				text, _ := io.ReadAll(res.Body)
				refused, _ := l.told()
				if (res.ProtoMajor == 2) != h2 {
					t.Errorf("answered by %s", res.Proto)
				}
				if tt.passes {
					want := "HTTP/2.0 " + tt.method +
						` a.example.com /x%2Fy?b=1;c&d=%zz "" Accept-Encoding: gzip|X-Forwarded-For: 10.0.0.1`
					if tt.method == "HEAD" {
						want = ""
					}
					if res.StatusCode != 200 || string(text) != want || len(refused) > 0 {
						t.Errorf("%d %q, want %q; %q", res.StatusCode, text, want, refused)
					}
					return
				}
				var got struct{ Status, Host, Reason, Decision, Source, Protocol, Message string }
				if err := json.Unmarshal(text, &got); err != nil || res.StatusCode != 403 ||
					res.Header.Get("x-proxy-error") != "blocked-by-method-policy" ||
					got.Status != "blocked" || got.Host != "a.example.com" ||
					got.Reason != "method_not_allowed" || got.Protocol != "https_connect" ||
					got.Message != "Method not allowed in limited mode." {
					t.Errorf("%d %s %v", res.StatusCode, text, err)
				}
				if want := []string{"a.example.com:443 method_not_allowed " +
					tt.method}; !slices.Equal(refused, want) {
					t.Errorf("%q, want %q", refused, want)
				}
			})
		}
	}
}

// TestHostInside: a connection that was made for one host carries nothing for another one.
func TestHostInside(t *testing.T) {
	for _, tt := range []struct {
		name, request string
		status        int
	}{
		{"the host", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", 200},
		{"another spelling", "GET / HTTP/1.1\r\nHost: EXAMPLE.com.:443\r\n\r\n", 200},
		{"another allowed host", "GET / HTTP/1.1\r\nHost: b.example.com\r\n\r\n", 400},
		{"a host that is not allowed", "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 400},
		{"another port", "GET / HTTP/1.1\r\nHost: example.com:444\r\n\r\n", 400},
		{"none", "GET / HTTP/1.1\r\n\r\n", 400},
		{"two", "GET / HTTP/1.1\r\nHost: example.com\r\nHost: evil.test\r\n\r\n", 400},
		{"the absolute form", "GET https://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", 400},
		{"a target for a proxy", "GET http://evil.test/ HTTP/1.1\r\nHost: example.com\r\n\r\n", 400},
		{"CONNECT", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", 400},
		{"two lengths", "GET / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400},
		{"userinfo", "GET / HTTP/1.1\r\nHost: a@example.com\r\n\r\n", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, echo)
			c := l.open("http/1.1")
			_, _ = io.WriteString(c, tt.request)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
			res.Body.Close()
			if res.StatusCode != tt.status || tt.status == 200 &&
				!strings.Contains(string(text), " GET example.com / ") {
				t.Errorf("%d %s", res.StatusCode, text)
			}
		})
	}
}

// TestUpgrade: in the mode limited no connection becomes one in which requests cannot be seen.
func TestUpgrade(t *testing.T) {
	l := newLab(t, echo)
	for _, protocol := range []string{"websocket", "h2c", "x"} {
		q, _ := http.NewRequest("GET", "https://example.com/", nil)
		q.Header.Set("Connection", "Upgrade")
		q.Header.Set("Upgrade", protocol)
		res, err := l.client(false).Do(q)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 403 || res.Header.Get("x-proxy-error") != "blocked-by-method-policy" {
			t.Errorf("%s: %d", protocol, res.StatusCode)
		}
	}
}

// full has TLS opened in the mode full, for a Rewriter.
func full(r proxy.Rewriter) func(*network.Config, *proxy.Command) {
	return func(c *network.Config, command *proxy.Command) { c.Mode, command.Rewriter = network.Full, r }
}

// A rewriter adds a header to each request and each response, and refuses one path.
type rewriter struct{ unhidden }

func (rewriter) Intercepts(h network.Host, port uint16) bool { return h.String() == "example.com" }

func (rewriter) Plain(string, string) error { return nil }

func (rewriter) PlainBody(_ string, body io.Reader) io.Reader { return body }

func (rewriter) Request(_ network.Host, _ uint16, _ bool, r *http.Request) error {
	if r.URL.Path == "/misuse" {
		return errors.New("refused")
	}
	r.Header.Set("X-Added", "1")
	return nil
}

func (rewriter) Response(_ network.Host, _ uint16, _ bool, r *http.Response) error {
	if r.Request.URL.Path == "/bad" {
		return errors.New("a response that must not pass")
	}
	r.Header.Set("X-Back", "1")
	return nil
}

// unhidden is the part of a Rewriter that hides nothing.
type unhidden struct{}

func (unhidden) Guards(h network.Host) bool { return h.String() == "example.com" }

func (unhidden) Names() []network.Host { return []network.Host{authorityHost("example.com")} }

func (unhidden) Hide(_ network.Host, reason string, _ map[string][]string,
	body io.Reader) (string, io.Reader, error) {
	return reason, body, nil
}

func authorityHost(name string) network.Host { h, _ := network.ParseHost(name); return h }

// TestRewriter: requests and responses are changed, any method and websockets pass, and what is refused
// is named.
func TestRewriter(t *testing.T) {
	l := newLab(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			echo(w, r)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn,
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, rw)
	}), full(rewriter{}))
	for _, tt := range []struct {
		path          string
		status        int
		header, value string
		body          string
	}{
		{"/", 200, "X-Back", "1", "X-Added: 1"},
		{"/misuse", 403, "X-Proxy-Error", "blocked-by-policy", `"reason":"credential_misuse"`},
		{"/bad", 502, "X-Back", "", "a response that must not pass"},
	} {
		res, err := l.client(true).Post("https://example.com"+tt.path, "text/plain",
			strings.NewReader("data"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != tt.status || res.Header.Get(tt.header) != tt.value ||
			!strings.Contains(string(text), tt.body) {
			t.Errorf("%s: %d %v %s", tt.path, res.StatusCode, res.Header, text)
		}
	}
	c := l.open("http/1.1")
	_, _ = io.WriteString(c,
		"GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 101 {
		t.Fatal(res, err)
	}
	_, _ = io.WriteString(c, "to and fro\n")
	if line, err := r.ReadString('\n'); line != "to and fro\n" {
		t.Errorf("%q, %v", line, err)
	}
	c.Close()
	if refused, _ := l.told(); !slices.Equal(refused, []string{"example.com:443 credential_misuse POST"}) {
		t.Errorf("%q", refused)
	}
}

// TestNotAsked: without a reason to open it, TLS passes as it is.
func TestNotAsked(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*network.Config, *proxy.Command)
	}{
		{"no rewriter", full(nil)},
		{"another host", full(rewriter{})},
		{"excluded", func(c *network.Config, command *proxy.Command) {
			full(rewriter{})(c, command)
			c.Uninspected = []network.Entry{{Pattern: "*.example.com"}}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, echo, tt.change)
			_, err := l.client(true).Get("https://a.example.com/")
			if err != nil {
				t.Error(err) // the client trusts the origin, too
			}
			if a, _ := l.interceptor.authority(); len(a.leaves) != 0 {
				t.Error("a certificate was made")
			}
		})
	}
}

// TestBadServer: a server whose certificate is not good is not talked to, and the client is told why.
func TestBadServer(t *testing.T) {
	origin := httptest.NewUnstartedServer(echo)
	silent(origin)
	origin.StartTLS()
	t.Cleanup(origin.Close)
	other, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, host string
		by         *Interceptor
		cause      string
	}{
		{"of an authority that is not trusted", "example.com", trusting(t, other.cert), "certificate signed by unknown authority"},
		{"for another name", "a.b.example.com", trusting(t, origin.Certificate()), "certificate is valid for"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLabTo(t, origin.Listener.Addr().String(), tt.by)
			res, err := l.client(true).Get("https://" + tt.host + "/")
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != 502 || !strings.Contains(string(text), tt.cause) {
				t.Errorf("%d %s", res.StatusCode, text)
			}
		})
	}
}

// TestDownload: a large response comes as it is sent, and its bytes are counted.
func TestDownload(t *testing.T) {
	const size = 64 << 20
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2=%v", h2), func(t *testing.T) {
			goOn := make(chan struct{})
			l := newLab(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "begin")
				_ = http.NewResponseController(w).Flush()
				<-goOn
				for range size / (64 << 10) {
					_, _ = w.Write(make([]byte, 64<<10))
				}
			}))
			res, err := l.client(h2).Get("https://example.com/")
			if err != nil {
				t.Fatal(err)
			}
			first := make([]byte, 5)
			if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "begin" {
				t.Fatalf("%q, %v", first, err)
			}
			close(goOn)
			n, err := io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if n != size || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			if _, end := l.told(); end.Down < size || end.Up < 100 || end.Up > size {
				t.Errorf("%+v", end)
			}
		})
	}
}

// TestNotTLS: in the mode limited nothing but TLS passes in a tunnel, in neither direction.
func TestNotTLS(t *testing.T) {
	greeted := make(chan []byte, 10)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "SSH-2.0-server\r\n")
			text, _ := io.ReadAll(conn)
			conn.Close()
			greeted <- text
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	for _, tt := range []struct {
		name, text string
		refused    []string
	}{
		{"SSH", "SSH-2.0-client\r\n", []string{"example.com:443 method_not_allowed"}},
		{"HTTP", "POST / HTTP/1.1\r\nHost: example.com\r\n\r\n", []string{"example.com:443 method_not_allowed"}},
		{"a broken hello", "\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", []string{"\"\":443 sni_mismatch"}},
		{"nothing", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLabTo(t, listener.Addr().String(), trusting(t, mustCert(t)))
			conn, r, status := l.connect("example.com:443")
			if status != 200 {
				t.Fatal(status)
			}
			_ = conn.SetDeadline(time.Now().Add(brief))
			_, _ = io.WriteString(conn, tt.text)
			if tcp, ok := conn.(*net.TCPConn); ok && tt.text == "" {
				_ = tcp.CloseWrite()
			}
			text, err := io.ReadAll(r)
			if len(text) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the client got %q, %v", text, err)
			}
			conn.Close() // so that the server, too, reads to an end if bytes pass
			if text := <-greeted; len(text) > 0 {
				t.Errorf("the server got %q", text)
			}
			if refused, _ := l.told(); !slices.Equal(refused, tt.refused) {
				t.Errorf("%q, want %q", refused, tt.refused)
			}
		})
	}
}

// TestExcluded: a host whose TLS must not be opened is refused where it would have to be.
func TestExcluded(t *testing.T) {
	l := newLab(t, echo, func(c *network.Config, _ *proxy.Command) {
		c.Uninspected = []network.Entry{{Pattern: "pinned.example.com"}}
	})
	if _, _, status := l.connect("pinned.example.com:443"); status != 403 {
		t.Error(status)
	}
	if _, _, status := l.connect("a.example.com:443"); status != 200 {
		t.Error(status)
	}
	if refused, _ := l.told(); !slices.Equal(refused, []string{"pinned.example.com:443 mitm_required"}) {
		t.Errorf("%q", refused)
	}
}

// TestRevoked: a host that is denied loses a response that is under way, and the requests behind it.
func TestRevoked(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2=%v", h2), func(t *testing.T) {
			l := newLab(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "begin")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
			client := l.client(h2)
			client.Timeout = brief
			res, err := client.Get("https://example.com/")
			if err != nil {
				t.Fatal(err)
			}
			l.change("a.example.com", "!example.com")
			var late net.Error
			if text, err := io.ReadAll(res.Body); err == nil || errors.As(err, &late) && late.Timeout() {
				t.Errorf("the response went on: %q, %v", text, err)
			}
			res.Body.Close()
			if res, err := client.Get("https://example.com/"); err == nil {
				res.Body.Close()
				if res.StatusCode != 403 {
					t.Error(res.StatusCode)
				}
			}
			client.CloseIdleConnections()
			if _, end := l.told(); end.Cause != proxy.Revoked {
				t.Errorf("%+v", end)
			}
		})
	}
}

// TestManyRequests: requests at once by one connection of a client need few of the server.
func TestManyRequests(t *testing.T) {
	l := newLab(t, echo)
	client := l.client(true)
	errs := make(chan error)
	get := func() error {
		res, err := client.Get("https://example.com/")
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	const n = 100
	for range n {
		go func() { errs <- get() }()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dialed > 1 {
		t.Errorf("%d connections to the server", l.dialed)
	}
}

// TestTrailers: bodies and trailers pass in both directions, as gRPC needs them.
func TestTrailers(t *testing.T) {
	l := newLab(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		n, _ := io.Copy(w, r.Body)
		w.Header().Set("X-Sum", fmt.Sprintf("%d%s", n, r.Trailer.Get("X-Mine")))
	}), full(rewriter{}))
	q, _ := http.NewRequest("POST", "https://example.com/",
		io.NopCloser(bytes.NewReader(make([]byte, 1<<20))))
	q.Trailer = http.Header{"X-Mine": {"m"}}
	res, err := l.client(true).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); n != 1<<20 || err != nil ||
		res.Trailer.Get("X-Sum") != "1048576m" {
		t.Errorf("%d %v %v", n, err, res.Trailer)
	}
}

// TestWrongRewriter: a Rewriter that cannot rewrite closes.
func TestWrongRewriter(t *testing.T) {
	l := newLab(t, echo, full(onlyHosts{}))
	if res, err := l.client(true).Get("https://example.com/"); err == nil {
		res.Body.Close()
		t.Error(res.Status)
	}
}

type onlyHosts struct{ unhidden }

func (onlyHosts) Plain(string, string) error { return nil }

func (onlyHosts) PlainBody(_ string, body io.Reader) io.Reader { return body }

func (onlyHosts) Intercepts(network.Host, uint16) bool { return true }

// TestClientGoes: a client that goes ends what was done for it.
func TestClientGoes(t *testing.T) {
	gone := make(chan struct{})
	l := newLab(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	c := l.open("http/1.1")
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
	if _, err := io.ReadFull(c, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	select {
	case <-gone:
	case <-time.After(bound):
		t.Error("the server still answers")
	}
}

// TestUpstream: TLS is opened, too, where hosts are reached by another proxy.
func TestUpstream(t *testing.T) {
	origin := httptest.NewUnstartedServer(echo)
	silent(origin)
	origin.StartTLS()
	t.Cleanup(origin.Close)
	asked := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		to, err := net.Dial("tcp", origin.Listener.Addr().String())
		if err != nil {
			return
		}
		defer to.Close()
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, rw); to.Close() }()
		_, _ = io.Copy(conn, to)
	}))
	t.Cleanup(other.Close)
	l := newLabTo(t, other.Listener.Addr().String(), trusting(t, origin.Certificate()),
		func(c *network.Config, _ *proxy.Command) {
			var err error
			if c.Upstream, err = network.ParseUpstream("http://"+other.Listener.Addr().String(),
				nil); err != nil {
				t.Fatal(err)
			}
		})
	for method, status := range map[string]int{"GET": 200, "DELETE": 403} {
		q, _ := http.NewRequest(method, "https://example.com/", nil)
		res, err := l.client(true).Do(q)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := <-asked; res.StatusCode != status || got != "CONNECT example.com:443" {
			t.Errorf("%s: %d, by %s", method, res.StatusCode, got)
		}
	}
}
