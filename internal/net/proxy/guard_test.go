// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// A fixedValue is a Rewriter with one value, for api.example.com:443.
type fixedValue struct{}

const realValue, dummyValue = "REALREAL", "FAKEFAKE"

func (fixedValue) Intercepts(h network.Host, port uint16) bool {
	return h.String() == "api.example.com" && port == 443
}

func (fixedValue) Guards(h network.Host) bool { return h.String() == "api.example.com" }

func (fixedValue) Names() []network.Host {
	h, _ := network.ParseHost("api.example.com")
	return []network.Host{h}
}

func (fixedValue) Plain(string, string) error { return nil }

func (fixedValue) PlainBody(_ string, body io.Reader) io.Reader { return body }

func (fixedValue) Hide(_ network.Host, reason string, header map[string][]string,
	body io.Reader) (string, io.Reader, error) {
	switch strings.Join(header["Content-Encoding"], ",") {
	case "":
	case "gzip":
		delete(header, "Content-Encoding")
		body = io.MultiReader(strings.NewReader("decoded "), body)
	default:
		return "", nil, errors.New("a coding")
	}
	hide := func(text string) string { return strings.ReplaceAll(text, realValue, dummyValue) }
	for name, values := range header {
		if strings.EqualFold(name, realValue) {
			delete(header, name)
		}
		for i := range values {
			values[i] = hide(values[i])
		}
	}
	text, err := io.ReadAll(body)
	return hide(reason), strings.NewReader(hide(string(text))), err
}

// kept is a lab with a fixedValue, whose server answers with text whatever it gets, and tells what that is.
func kept(t *testing.T, answer string, change ...func(*lab)) (*lab, func() string) {
	t.Helper()
	got := make(chan string, 10)
	policy := makePolicy(t, network.Config{Mode: network.Full}, "*.example.com", "*.example.net",
		"93.184.216.34")
	l := newLab(t, policy, listen(t, func(c net.Conn) {
		p := make([]byte, 4<<10)
		if n, _ := c.Read(p); n > 0 {
			got <- string(p[:n])
			_, _ = io.WriteString(c, answer)
		}
	}), append([]func(*lab){func(l *lab) { l.command.Rewriter = fixedValue{} }}, change...)...)
	return l, func() string {
		select {
		case text := <-got:
			return text
		default:
			return ""
		}
	}
}

// in is a connection in a tunnel to a host.
func (l *lab) in(to string) *net.TCPConn {
	l.t.Helper()
	return l.established("CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n", connected)
}

// all sends text and returns what comes until the end.
func all(conn *net.TCPConn, text string) string {
	_, _ = io.WriteString(conn, text)
	_ = conn.CloseWrite()
	out, _ := io.ReadAll(conn)
	return string(out)
}

func (l *lab) refused() (list []string) {
	for _, e := range l.told() {
		if e.Kind == Decided && e.Decision.Ruling != network.Allow {
			list = append(list, e.Host+" "+string(e.Decision.Reason))
		}
	}
	return list
}

// TestGuardedPlain: whatever comes without TLS from a host that gets a credential has no value in it,
// whichever way it comes; so it is at its other ports, and for other names at its address.
func TestGuardedPlain(t *testing.T) {
	const value = "GET /x HTTP/1.1\r\nHost: @\r\nRange: bytes=1-\r\nRequest-Range: bytes=1-\r\nAccept-Encoding: br\r\n\r\n"
	for _, tt := range []struct{ name, answer, want string }{
		{"a body", "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n" + realValue, dummyValue},
		{"a body without an end", "HTTP/1.1 200 OK\r\n\r\n" + realValue, dummyValue},
		{"chunks, with extensions and trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;" + realValue + "\r\nREAL\r\n4\r\nREAL\r\n0\r\nX: " + realValue + "\r\n\r\n", dummyValue},
		{"a status line", "HTTP/1.1 200 " + realValue + "\r\nContent-Length: 0\r\n\r\n", "200 " + dummyValue},
		{"a header", "HTTP/1.1 200 OK\r\nX: " + realValue + "\r\nContent-Length: 0\r\n\r\n", "X: " + dummyValue},
		{"the name of a header", "HTTP/1.1 200 OK\r\n" + realValue + ": x\r\nContent-Length: 0\r\n\r\n", "200 OK"},
		{"an interim response", "HTTP/1.1 103 Early\r\nLink: " + realValue + "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200 OK"},
		{"a malformed status", "HTTP/1.1 " + realValue + "\r\n\r\n", "502"},
		{"a malformed header", "HTTP/1.1 200 OK\r\n" + realValue + "\r\n\r\n", "502"},
		{"a coding that is decoded", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\n" + realValue, "Transfer-Encoding: chunked\r\n\r\n10\r\ndecoded " + dummyValue},
		{"a coding that cannot be read", "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 8\r\n\r\n" + realValue, "502"},
		{"a coding that Connection names", "HTTP/1.1 200 OK\r\nConnection: content-encoding\r\nContent-Encoding: br\r\nContent-Length: 8\r\n\r\n" + realValue, "502"},
	} {
		for _, way := range []struct {
			name string
			get  func(*lab) string
		}{
			{"a proxy", func(l *lab) string {
				return l.send(strings.Replace(strings.ReplaceAll(value, "@", "api.example.com"), "GET ",
					"GET http://api.example.com", 1))
			}},
			{"a tunnel", func(l *lab) string {
				return all(l.in("api.example.com:443"), strings.ReplaceAll(value, "@", "api.example.com:443"))
			}},
			{"another port", func(l *lab) string {
				return all(l.in("api.example.com:8080"),
					strings.ReplaceAll(value, "@", "api.example.com:8080"))
			}},
			{"another name", func(l *lab) string {
				return all(l.in("b.example.com:8080"), strings.ReplaceAll(value, "@", "b.example.com:8080"))
			}},
			{"its address", func(l *lab) string {
				return all(l.in("93.184.216.34:443"), strings.ReplaceAll(value, "@", "93.184.216.34:443"))
			}},
		} {
			t.Run(tt.name+"/"+way.name, func(t *testing.T) {
				l, got := kept(t, tt.answer)
				out := way.get(l)
				if strings.Contains(out, realValue) || !strings.Contains(out, tt.want) {
					t.Errorf("%q", out)
				}
				if sent := got(); strings.Contains(sent, "Range") ||
					!strings.Contains(sent, "Accept-Encoding: identity\r\n") {
					t.Errorf("the server got %q", sent)
				}
			})
		}
	}
}

// TestGuardedWebsocket: nothing looks into the frames of a websocket without TLS.
func TestGuardedWebsocket(t *testing.T) {
	l, _ := kept(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"+realValue)
	out := l.send("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
	if !strings.HasPrefix(out, "HTTP/1.1 403") ||
		!slices.Equal(l.refused(), []string{"api.example.com mitm_required"}) {
		t.Errorf("%q", out)
	}
}

// TestGuardedTunnels: what cannot be looked into does not come from a host that gets a credential, nor
// from its address at that port. At others, what is neither TLS nor a request passes as before.
func TestGuardedTunnels(t *testing.T) {
	hello := string(clientHello(t, "api.example.com"))
	const get = "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
	for _, tt := range []struct {
		name, to, first string
		refused         string // empty: it passes
	}{
		{"another protocol", "api.example.com:443", "SSH-2.0-x\r\n", "api.example.com mitm_required"},
		{"a binary one", "api.example.com:443", "\x01\x02", "api.example.com mitm_required"},
		{"another protocol at its address", "b.example.com:443", "SSH-2.0-x\r\n", "b.example.com mitm_required"},
		{"another protocol at another port", "api.example.com:22", "SSH-2.0-x\r\n", ""},
		{"another protocol elsewhere", "www.example.net:443", "SSH-2.0-x\r\n", ""},
		{"TLS that cannot be opened", "api.example.com:8443", hello, "api.example.com mitm_required"},
		{"TLS at its address", "b.example.com:8443", string(clientHello(t, "b.example.com")), "b.example.com mitm_required"},
		{"TLS at its address, without a name", "93.184.216.34:443", string(clientHello(t, "")), "93.184.216.34 mitm_required"},
		{"TLS for it elsewhere", "www.example.net:443", hello, "api.example.com sni_mismatch"},
		{"TLS for it elsewhere, at another port", "www.example.net:8443", hello, "api.example.com sni_mismatch"},
		{"TLS with an encrypted name elsewhere", "www.example.net:443", string(withECH(t, "www.example.net")), "www.example.net sni_mismatch"},
		{"TLS elsewhere", "www.example.net:443", string(clientHello(t, "www.example.net")), ""},
		{"a request for it elsewhere", "www.example.net:8080", get, "api.example.com host_mismatch"},
		{"a request in the form for proxies elsewhere", "www.example.net:8080", "GET http://api.example.com/ HTTP/1.1\r\nHost: www.example.net:8080\r\n\r\n", "www.example.net host_mismatch"},
		{"a proxy elsewhere", "www.example.net:8080", "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n", "api.example.com host_mismatch"},
		{"a request for another host", "api.example.com:443", "GET / HTTP/1.1\r\nHost: www.example.net\r\n\r\n", "api.example.com host_mismatch"},
		{"a websocket", "api.example.com:8080", "GET / HTTP/1.1\r\nHost: api.example.com:8080\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, got := kept(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			_ = all(l.in(tt.to), tt.first)
			refused := strings.Join(l.refused(), ", ")
			if sent := got(); refused != tt.refused || (sent == "") != (tt.refused != "") ||
				strings.Contains(sent, "Upgrade") {
				t.Errorf("refused %q, the server got %q", refused, sent)
			}
		})
	}
}

// TestGuardedLate: where the server of a guarded host begins, no TLS and no request follows.
func TestGuardedLate(t *testing.T) {
	for name, first := range map[string]string{
		"TLS": string(clientHello(t, "api.example.com")), "a request": "GET / HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan []byte, 1)
			l, _ := kept(t, "", func(l *lab) {
				l.origin = listen(t, func(c net.Conn) {
					_, _ = io.WriteString(c, "220 hello\r\n")
					text, _ := io.ReadAll(c)
					got <- text
				})
			})
			conn := l.in("api.example.com:8080")
			if _, err := io.ReadFull(conn, make([]byte, len("220 hello\r\n"))); err != nil {
				t.Fatal(err)
			}
			_ = all(conn, first)
			if sent := <-got; len(sent) > 0 {
				t.Errorf("the server got %q", sent)
			}
			if refused := l.refused(); len(refused) != 1 {
				t.Errorf("%q", refused)
			}
		})
	}
}

// TestGuardedDatagrams: datagrams are not looked into, so none goes to the port of a credential,
// whatever the name.
func TestGuardedDatagrams(t *testing.T) {
	a := &access{s: &Service{proxy: &Proxy{Resolver: readZone(t)}, command: &Command{Rewriter: fixedValue{}},
		ctx: t.Context()}}
	policy := full(t, "*.example.com", "*.example.net")
	for host, want := range map[string]policyView{
		"api.example.com:443": {true, true, true}, "api.example.com:53": {some: true, hide: true},
		"b.example.com:443": {true, true, true}, "www.example.net:443": {},
	} {
		var err error
		if a.req.Host, a.req.Port, err = network.ParseAuthority(host, 0); err != nil {
			t.Fatal(err)
		}
		addrs, err := a.s.resolve(a.req.Host)
		if err != nil {
			t.Fatal(err)
		}
		a.resolved = netip.AddrPortFrom(addrs[0], a.req.Port)
		if got := a.view(policy); got != want {
			t.Errorf("%s: %+v", host, got)
		}
	}
}

// TestUnknownPlaces: while the addresses of a guarded host cannot be looked up, every address may be its
// own; a name that is missing has none; and one that is refused anyway is not looked up.
func TestUnknownPlaces(t *testing.T) {
	for _, tt := range []struct {
		name  string
		err   error
		allow string
		want  policyView
	}{
		{"no answer", &net.DNSError{IsTimeout: true}, "api.example.com", policyView{some: true, hide: true}},
		{"missing", &net.DNSError{IsNotFound: true}, "api.example.com", policyView{}},
		{"not allowed", &net.DNSError{IsTimeout: true}, "www.example.net", policyView{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			z := &failing{err: tt.err}
			s := &Service{proxy: &Proxy{Resolver: z}, command: &Command{Rewriter: fixedValue{}},
				ctx: t.Context()}
			for range 2 {
				if got := s.near(full(t, tt.allow), netip.MustParseAddr("93.184.216.99"),
					443); got != tt.want {
					t.Errorf("%+v", got)
				}
			}
			if z.asked > 1 || tt.name == "not allowed" && z.asked > 0 {
				t.Errorf("asked %d times", z.asked)
			}
		})
	}
}

// TestTunnelHosts: each request in a tunnel is judged by the host that it names, also one that is not
// the first; what is not for the host of the tunnel, or another one that is allowed, does not reach the
// server.
func TestTunnelHosts(t *testing.T) {
	const good = "GET /good HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n"
	const evil = "GET /evil HTTP/1.1\r\nHost: evil.test\r\n\r\n"
	for _, tt := range []struct {
		name, sent, want string
	}{
		{"its host", good + good, good + good},
		{"another one that is allowed", "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n", "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"},
		{"a denied one", evil, ""},
		{"a denied one at last", good + evil, good},
		{"behind a body", "POST / HTTP/1.1\r\nHost: api.example.com:8080\r\nContent-Length: 3\r\n\r\nabc" + evil, "POST / HTTP/1.1\r\nHost: api.example.com:8080\r\nContent-Length: 3\r\n\r\nabc"},
		{"behind chunks", "POST / HTTP/1.1\r\nHost: api.example.com:8080\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + evil, "POST / HTTP/1.1\r\nHost: api.example.com:8080\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		{"behind an upgrade that was not taken", "GET / HTTP/1.1\r\nHost: api.example.com:8080\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n" + evil, "GET / HTTP/1.1\r\nHost: api.example.com:8080\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"},
		{"an upgrade", "GET / HTTP/1.1\r\nHost: api.example.com:8080\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n\x81raw", "GET / HTTP/1.1\r\nHost: api.example.com:8080\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n\x81raw"},
		{"behind empty lines", "\r\n\n" + evil, "\r\n\n"},
		{"lines that end as some write them", "GET /evil HTTP/1.1\nHost: evil.test\n\n", ""},
		{"two hosts", "GET / HTTP/1.1\r\nHost: api.example.com\r\nHost: evil.test\r\n\r\n", ""},
		{"no host", "GET / HTTP/1.1\r\n\r\n", ""},
		{"the form for proxies", "GET http://evil.test/ HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", ""},
		{"the form for proxies, by TLS", "GET https://evil.test/ HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", ""},
		{"the form for proxies, with a user", "GET http://api.example.com@evil.test/ HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", ""},
		{"the form for proxies, with a fragment", "GET http://evil.test/#x HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", ""},
		{"the form for proxies, by another scheme", "GET x://evil.test/ HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", ""},
		{"another form", "GET evil.test:80 HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", ""},
		{"the form for proxies, to its host", "GET https://api.example.com:8080/?u=x://evil.test/ HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", "GET https://api.example.com:8080/?u=x://evil.test/ HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n"},
		{"an address in a path", "GET /x://evil.test/ HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", "GET /x://evil.test/ HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n"},
		{"all of its server", "OPTIONS * HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n"},
		{"blanks as some read them", "GET\v/evil\fHTTP/1.1\r\nHost: evil.test\r\n\r\n", ""},
		{"separators as some read them", "GET\x1c/evil\x1fHTTP/1.1\r\nHost: evil.test\r\n\r\n", ""},
		{"blanks before a request as some read them", "\v\fGET /evil HTTP/1.1\r\nHost: evil.test\r\n\r\n", ""},
		{"wide blanks as some read them", "GET\x85/evil\xa0HTTP/1.1\r\nHost: evil.test\r\n\r\n", ""},
		{"a blank behind the version", "GET /evil HTTP/1.1\v\r\nHost: evil.test\r\n\r\n", ""},
		{"a version in small letters", "GET /evil http/1.1\r\nHost: evil.test\r\n\r\n", ""},
		{"a length twice", "POST / HTTP/1.1\r\nHost: api.example.com:8080\r\nContent-Length: 0\r\nContent-Length: 50\r\n\r\n" + evil, ""},
		{"text behind a request", good + "hello\r\n", good},
		{"HTTP/2 from the start", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{"another protocol", "SSH-2.0-x\r\nGET / HTTP/1.1\r\n", "SSH-2.0-x\r\nGET / HTTP/1.1\r\n"},
		{"a binary one", "\x00\x00GET / HTTP/1.1\r\n", "\x00\x00GET / HTTP/1.1\r\n"},
	} {
		for _, slow := range []bool{false, true} {
			name := tt.name
			if slow {
				name += "/a byte at a time"
			}
			t.Run(name, func(t *testing.T) {
				got := make(chan []byte, 1)
				l := newLab(t, full(t, "*.example.com"), listen(t, func(c net.Conn) {
					text, _ := io.ReadAll(c)
					got <- text
				}))
				conn := l.in("api.example.com:8080")
				if slow {
					_ = conn.SetNoDelay(true)
					for i := range len(tt.sent) {
						_, _ = io.WriteString(conn, tt.sent[i:i+1])
					}
				} else {
					_, _ = io.WriteString(conn, tt.sent)
				}
				_ = conn.CloseWrite()
				_, _ = io.Copy(io.Discard, conn)
				text := string(<-got)
				if strings.Contains(text, "Host: evil.test") || text != tt.want && !slow {
					// a byte at a time, lines begin before they are known
					t.Errorf("the server got %q", text)
				}
				if refused := l.refused(); len(refused) > 0 && tt.want == tt.sent {
					t.Errorf("refused %q", refused)
				}
			})
		}
	}
}

// TestTunnelAnswers: a request that is refused in a tunnel has an answer, and no line of it is passed.
func TestTunnelAnswers(t *testing.T) {
	t.Run("an answer", func(t *testing.T) {
		l := newLab(t, full(t, "*.example.com", "!evil.example.com"), listen(t, answerAny(okResponse)))
		out := all(l.in("api.example.com:8080"), "GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n")
		if !strings.HasPrefix(out, "HTTP/1.1 403") ||
			!slices.Equal(l.refused(), []string{"evil.example.com denied"}) {
			t.Errorf("%q", out)
		}
	})
	t.Run("a line that is too long", func(t *testing.T) {
		got := make(chan []byte, 1)
		l := newLab(t, full(t, "*.example.com"), listen(t, func(c net.Conn) {
			text, _ := io.ReadAll(c)
			got <- text
		}))
		_ = all(l.in("api.example.com:8080"), "GET /"+strings.Repeat("x", 3*maxHead)+
			" HTTP/1.1\r\nHost: evil.test\r\n\r\n")
		if bytes.Contains(<-got, []byte("evil")) {
			t.Error("its host was reached")
		}
	})
}

// A failing resolver answers with an error.
type failing struct {
	err   error
	asked int
}

func (f *failing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	f.asked++
	return nil, f.err
}
