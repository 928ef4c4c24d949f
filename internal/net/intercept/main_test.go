// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silent is what servers of tests tell about connections that clients end.
func silent(s *httptest.Server) { s.Config.ErrorLog = log.New(io.Discard, "", 0) }

const (
	bound = time.Minute
	brief = 10 * time.Second // for what ends at once, unless a wall is missing
)

// zone answers every name with a public address, which no test connects to: names that begin with "a." with
// another one.
type zone struct{}

func (zone) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	if strings.HasPrefix(name, "a.") {
		return []netip.Addr{netip.MustParseAddr("93.184.216.35")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// A lab is a proxy that opens TLS, whose dials lead to an origin on loopback. The certificate of the
// origin is for example.com, and the only one that the lab trusts.
type lab struct {
	t           testing.TB
	interceptor *Interceptor
	proxy       *proxy.Proxy
	service     *proxy.Service
	addr        string
	origin      string

	mu     sync.Mutex
	policy *network.Policy
	events []proxy.Event
	dialed int
}

func (l *lab) dial(ctx context.Context, d *net.Dialer, kind, address string) (net.Conn, error) {
	if err := d.Control(kind, address, nil); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.dialed++
	l.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, kind, l.origin)
}

func (l *lab) report(e proxy.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *lab) now() *network.Policy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.policy
}

// change replaces the policy.
func (l *lab) change(entries ...string) {
	p := makePolicy(l.t, network.Config{Mode: network.Limited, Inspector: l.interceptor}, entries...)
	l.mu.Lock()
	l.policy = p
	l.mu.Unlock()
	l.service.Recheck()
}

// told ends the service and returns what was refused, and the last end of a connection.
func (l *lab) told() (refused []string, end proxy.Event) {
	if err := l.service.Close(); err != nil {
		l.t.Error(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		switch {
		case e.Kind == proxy.Closed:
			end = e
		case e.Decision.Ruling != network.Allow:
			refused = append(refused,
				strings.TrimSpace(fmt.Sprintf("%s:%d %s %s", e.Host, e.Port, e.Decision.Reason, e.Method)))
		}
	}
	return refused, end
}

func makePolicy(t testing.TB, c network.Config, entries ...string) *network.Policy {
	t.Helper()
	for _, e := range entries {
		pattern, deny := strings.CutPrefix(e, "!")
		c.Entries = append(c.Entries, network.Entry{Pattern: pattern, Deny: deny, Broad: true})
	}
	p, err := network.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newLab serves hosts of example.com in the mode limited. Change may alter what it is made from.
func newLab(t testing.TB, handler http.Handler, change ...func(*network.Config, *proxy.Command)) *lab {
	t.Helper()
	origin := httptest.NewUnstartedServer(handler)
	origin.EnableHTTP2 = true
	silent(origin)
	origin.StartTLS()
	t.Cleanup(origin.Close)
	return newLabTo(t, origin.Listener.Addr().String(), trusting(t, origin.Certificate()), change...)
}

// trusting returns an Interceptor for which the certificates are those of the system.
func trusting(t testing.TB, certs ...*x509.Certificate) *Interceptor {
	t.Helper()
	name := filepath.Join(t.TempDir(), "system.pem")
	var text []byte
	for _, c := range certs {
		text = append(text, encode(c.Raw)...)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return newInterceptor(nil, func(string) string { return "" }, []string{"/missing/bundle.pem", name})
}

func newLabTo(t testing.TB, origin string, by *Interceptor,
	change ...func(*network.Config, *proxy.Command)) *lab {
	t.Helper()
	l := &lab{t: t, interceptor: by, origin: origin}
	l.proxy = &proxy.Proxy{Resolver: zone{}, Dial: l.dial}
	command := &proxy.Command{CallID: "call-1", Policy: l.now, Report: l.report}
	c := network.Config{Mode: network.Limited, Inspector: by}
	for _, f := range change {
		f(&c, command)
	}
	l.policy = makePolicy(t, c, "**.example.com")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.addr = listener.Addr().String()
	l.service = l.proxy.Serve(listener, command)
	t.Cleanup(func() { l.told() })
	return l
}

// trust is TLS of a client that trusts the bundle.
func (l *lab) trust() *tls.Config {
	l.t.Helper()
	bundle, err := l.interceptor.Bundle()
	if err != nil {
		l.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle.PEM) {
		l.t.Fatal("no certificate in the bundle")
	}
	return &tls.Config{RootCAs: pool}
}

// client returns one that uses the proxy, by HTTP/2 or not.
func (l *lab) client(h2 bool) *http.Client {
	l.t.Helper()
	tr := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: l.addr}), TLSClientConfig: l.trust(),
		ForceAttemptHTTP2: h2,
	}
	l.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: bound}
}

// connect opens a tunnel to a host of the proxy, and reads the answer.
func (l *lab) connect(to string) (net.Conn, *bufio.Reader, int) {
	l.t.Helper()
	conn, err := net.Dial("tcp", l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(bound))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		l.t.Fatal(err)
	}
	for rest := line; rest != "\r\n"; {
		if rest, err = r.ReadString('\n'); err != nil {
			l.t.Fatal(err)
		}
	}
	status, err := strconv.Atoi(strings.Fields(line)[1])
	if err != nil {
		l.t.Fatal(err)
	}
	return conn, r, status
}

// open opens TLS in a tunnel to example.com.
func (l *lab) open(protocols ...string) *tls.Conn {
	l.t.Helper()
	conn, _, status := l.connect("example.com:443")
	if status != http.StatusOK {
		l.t.Fatal(status)
	}
	config := l.trust()
	config.ServerName, config.NextProtos = "example.com", protocols
	c := tls.Client(conn, config)
	if err := c.Handshake(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { c.Close() })
	return c
}

// echo tells what arrived.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s %s %q %s", r.Proto, r.Method, r.Host, r.RequestURI, body,
		strings.Join(headers(r.Header), "|"))
})

func headers(h http.Header) []string {
	var out []string
	for name, values := range h {
		out = append(out, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(out)
	return out
}
