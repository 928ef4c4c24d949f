// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// TestSmuggling sends requests that two readers could understand differently. Each is refused
// without a dial.
func TestSmuggling(t *testing.T) {
	const line, host = "POST http://api.example.com/ HTTP/1.1\r\n", "Host: api.example.com\r\n"
	for _, test := range []struct{ name, request string }{
		{"length and chunks", line + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"chunks and length", line + host + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"},
		{"two lengths", line + host + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"},
		{"one length twice", line + host + "Content-Length: 4\r\ncontent-length: 4\r\n\r\nabcd"},
		{"list of lengths", line + host + "Content-Length: 4, 4\r\n\r\nabcd"},
		{"signed length", line + host + "Content-Length: +4\r\n\r\nabcd"},
		{"negative length", line + host + "Content-Length: -1\r\n\r\n"},
		{"hexadecimal length", line + host + "Content-Length: 0x4\r\n\r\nabcd"},
		{"empty length", line + host + "Content-Length:\r\n\r\n"},
		{"long length", line + host + "Content-Length: 99999999999999999999\r\n\r\n"},
		{"chunks twice", line + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"chunked last", line + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
		{"chunked not last", line + host + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
		{"vertical tab", line + host + "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n"},
		{"chunks in HTTP/1.0", "POST http://api.example.com/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"blank before colon", line + host + "Content-Length : 4\r\n\r\nabcd"},
		{"folded line", line + host + "X: a\r\n Content-Length: 4\r\n\r\nabcd"},
		{"folded first line", line + " Host: evil.test\r\n" + host + "\r\n"},
		{"bare LF", line + host + "X: a\nContent-Length: 4\r\n\r\nabcd"},
		{"bare CR", line + host + "X: a\rContent-Length: 4\r\n\r\nabcd"},
		{"LF only", strings.ReplaceAll(line+host+"\r\n", "\r\n", "\n")},
		{"NUL in a value", line + host + "X: a\x00b\r\n\r\n"},
		{"NUL in the target", "GET http://api.example.com/\x00 HTTP/1.1\r\n" + host + "\r\n"},
		{"DEL", line + host + "X: a\x7fb\r\n\r\n"},
		{"no colon", line + host + "X\r\n\r\n"},
		{"no name", line + host + ": x\r\n\r\n"},
		{"two hosts", line + host + host + "\r\n"},
		{"no host", line + "\r\n"},
		{"empty line first", "GET\r\n" + line + host + "\r\n"},
		{"tab in the line", "GET\thttp://api.example.com/\tHTTP/1.1\r\n" + host + "\r\n"},
		{"two blanks in the line", "GET  http://api.example.com/ HTTP/1.1\r\n" + host + "\r\n"},
		{"four words", "GET http://api.example.com/ http://evil.test/ HTTP/1.1\r\n" + host + "\r\n"},
		{"HTTP/0.9", "GET http://api.example.com/\r\n\r\n"},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{"version in small letters", "GET http://api.example.com/ http/1.1\r\n" + host + "\r\n"},
		{"version 1.2", "GET http://api.example.com/ HTTP/1.2\r\n" + host + "\r\n"},
		{"method with control", "GE\x01T http://api.example.com/ HTTP/1.1\r\n" + host + "\r\n"},
		{"CONNECT with a body", "CONNECT api.example.com:443 HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd"},
		{"CONNECT with chunks", "CONNECT api.example.com:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"absolute form in Host", line + "Host: http://api.example.com/\r\n\r\n"},
		{"two authorities in Host", line + "Host: api.example.com, evil.test\r\n\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, full(t, "api.example.com"), "")
			got := l.send(test.request)
			if !strings.HasPrefix(got, "HTTP/1.1 400 ") || strings.Count(got, "HTTP/1.1 ") != 1 {
				t.Errorf("answer %q, want one 400", got)
			}
			if l.told(); len(l.dialed) > 0 {
				t.Errorf("dialed %q", l.dialed)
			}
		})
	}
}

// TestBadChunks sends bodies whose chunks are malformed: the server never gets the end of one.
func TestBadChunks(t *testing.T) {
	for _, test := range []struct{ name, body string }{
		{"negative", "-1\r\n\r\n"},
		{"prefix", "0x2\r\nab\r\n0\r\n\r\n"},
		{"no size", "\r\nab\r\n0\r\n\r\n"},
		{"too long", "ffffffffffffffffff\r\nab"},
		{"bare LF", "2\nab\r\n0\r\n\r\n"},
		{"bare LF behind", "2\r\nab\n0\r\n\r\n"},
		{"longer than its size", "2\r\nabc\r\n0\r\n\r\n"},
		{"long extension", "2;" + strings.Repeat("x", maxChunkLine) + "\r\nab\r\n0\r\n\r\n"},
		{"LF in an extension", "2;\nx\r\nab\r\n0\r\n\r\n"},
		{"malformed trailer", "0\r\nX y\r\n\r\n"},
		{"folded trailer", "0\r\nX: y\r\n z\r\n\r\n"},
		{"long trailers", "0\r\n" + strings.Repeat("X: y\r\n", maxTrailers/5) + "\r\n"},
		{"cut", "2\r\na"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := make(chan string, 1)
			l := newLab(t, full(t, "api.example.com"), listen(t, func(conn net.Conn) {
				all, _ := io.ReadAll(conn)
				got <- string(all)
			}))
			conn := l.connect()
			_, _ = io.WriteString(conn,
				"POST http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n"+test.body)
			_ = conn.CloseWrite()
			if _, sent, _ := strings.Cut(<-got, "\r\n\r\n"); strings.HasSuffix(sent, "0\r\n\r\n") {
				t.Errorf("the server gets %q", sent)
			}
		})
	}
}

// TestBounds sends heads at their bounds and above.
func TestBounds(t *testing.T) {
	const begin = "GET http://api.example.com/ HTTP/1.0\r\n"
	for _, test := range []struct{ name, request, want string }{
		{"128 headers", begin + strings.Repeat("X: y\r\n", maxFields) + "\r\n", "HTTP/1.1 200"},
		{"129 headers", begin + strings.Repeat("X: y\r\n", maxFields+1) + "\r\n", "HTTP/1.1 431"},
		{"64 KiB", begin + "X: " + strings.Repeat("y", maxHead-len(begin)-len("X: \r\n\r\n")) + "\r\n\r\n", "HTTP/1.1 200"},
		{"a byte more", begin + "X: " + strings.Repeat("y", maxHead-len(begin)-len("X: \r\n\r\n")+1) + "\r\n\r\n", "HTTP/1.1 431"},
		{"a line without end", "GET http://" + strings.Repeat("y", maxHead), "HTTP/1.1 431"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, full(t, "api.example.com"), listen(t, func(conn net.Conn) {
				for r := bufio.NewReader(conn); ; {
					if line, err := r.ReadString('\n'); err != nil || line == "\r\n" {
						break
					}
				}
				_, _ = io.WriteString(conn, okResponse)
			}))
			if got := l.send(test.request); !strings.HasPrefix(got, test.want) {
				t.Errorf("%.60q, want %s", got, test.want)
			}
		})
	}
}

// TestRebinding has a name whose addresses change with each question, and a dialer that goes
// elsewhere than it was told. Neither leads to an address that the policy protects.
func TestRebinding(t *testing.T) {
	reached := make(chan struct{}, 10)
	origin := listen(t, func(conn net.Conn) { reached <- struct{}{}; answerAny(okResponse)(conn) })
	t.Run("one question", func(t *testing.T) {
		l := newLab(t, full(t, "*.example.com"), origin)
		for i, want := range []string{"HTTP/1.1 200", "HTTP/1.1 403"} {
			if got := l.send("GET http://rebind.example.com/ HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, want) {
				t.Errorf("%d: %q, want %s", i, got, want)
			}
		}
		if l.told(); fmt.Sprint(l.dialed) != "[93.184.216.34:80]" || len(l.zone.questions()) != 2 {
			t.Errorf("dialed %q after %q", l.dialed, l.zone.questions())
		}
	})
	<-reached
	for _, test := range []struct{ name, elsewhere string }{
		{"another address", origin},
		{"a protected address", "127.0.0.1:80"},
		{"another port", "93.184.216.34:81"},
		{"no address", "localhost:80"},
	} {
		t.Run("dialer with "+test.name, func(t *testing.T) {
			l := newLab(t, full(t, "*.example.com"), origin, func(l *lab) {
				l.proxy.Dial = func(ctx context.Context, d *net.Dialer, kind, _ string) (net.Conn, error) {
					if test.elsewhere != origin {
						return nil, d.Control(kind, test.elsewhere, nil)
					}
					return d.DialContext(ctx, kind, test.elsewhere)
				}
			})
			if got := l.send("GET http://a.example.com/ HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got,
				"HTTP/1.1 502") || !strings.Contains(got, errNotVetted.Error()) {
				t.Errorf("%q, want a 502 for an address that was not vetted", got)
			}
		})
	}
	if len(reached) > 0 {
		t.Error("the origin was reached")
	}
}

// TestQuestions looks at what a resolver is asked: the whole name, once, and nothing for refused
// names, addresses and local names, by each way.
func TestQuestions(t *testing.T) {
	entries := []string{"api.example.com", "localhost", "127.0.0.1", "!denied.example.com"}
	for _, test := range []struct{ name, request, want string }{
		{"allowed", "GET http://API.example.com./ HTTP/1.0\r\n\r\n", "[api.example.com.]"},
		{"allowed by CONNECT", "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n", "[api.example.com.]"},
		{"allowed by SOCKS5", "\x05\x01\x00\x05\x01\x00\x03\x0fapi.example.com\x00\x50", "[api.example.com.]"},
		{"miss", "GET http://secret.evil.test/ HTTP/1.0\r\n\r\n", "[]"},
		{"miss by CONNECT", "CONNECT secret.evil.test:443 HTTP/1.1\r\n\r\n", "[]"},
		{"miss by SOCKS5", "\x05\x01\x00\x05\x01\x00\x03\x09evil.test\x00\x50", "[]"},
		{"tunnel in a name", "CONNECT " + strings.Repeat(strings.Repeat("a", 60)+".", 4) + "test:443 HTTP/1.1\r\n\r\n", "[]"},
		{"denied", "GET http://denied.example.com/ HTTP/1.0\r\n\r\n", "[]"},
		{"malformed", "GET http://u@api.example.com/ HTTP/1.0\r\n\r\n", "[]"},
		{"Host of another", "GET http://api.example.com/ HTTP/1.1\r\nHost: x.example.com\r\n\r\n", "[]"},
		{"address", "GET http://2130706433/ HTTP/1.0\r\n\r\n", "[]"},
		{"local name", "GET http://localhost/ HTTP/1.0\r\n\r\n", "[]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := &noted{}
			l := newLab(t, full(t, entries...), "", func(l *lab) { l.proxy.Resolver = asked })
			_ = l.send(test.request)
			if l.told(); fmt.Sprint(asked.names) != test.want {
				t.Errorf("asked for %q, want %s", asked.names, test.want)
			}
		})
	}
}

// noted is a resolver that has no answers.
type noted struct{ names []string }

func (n *noted) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.names = append(n.names, host)
	return nil, errors.New("no answer")
}

// TestFirstByte has what selects no protocol.
func TestFirstByte(t *testing.T) {
	l := newLab(t, full(t, "api.example.com"), "")
	for _, test := range []struct{ name, sent, want string }{
		{"SOCKS4", "\x04\x01\x00\x50\x5d\xb8\xd8\x22\x00", "\x00\x5b\x00\x00\x00\x00\x00\x00"},
		{"TLS", string(clientHello(t, "api.example.com")), ""},
		{"NUL", "\x00", ""},
		{"LF", "\n", ""},
		{"nothing", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn := l.connect()
			_, _ = io.WriteString(conn, test.sent)
			_ = conn.CloseWrite()
			// What is unread makes the end a reset.
			if got, _ := io.ReadAll(conn); string(got) != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestTwoCommands has two commands with different policies on one proxy, at once: none gets what
// the other one may.
func TestTwoCommands(t *testing.T) {
	origin := listen(t, answerAny(okResponse))
	one := newLab(t, full(t, "a.example.com"), origin)
	two := newLab(t, full(t, "b.example.com"), origin,
		func(l *lab) { l.proxy, l.command.CallID = one.proxy, "call-2" })
	var group sync.WaitGroup
	for i := range 40 {
		l, host, want := one, "a.example.com", "HTTP/1.1 200"
		if i%2 == 1 {
			l = two
		}
		if i%4 > 1 {
			host = "b.example.com"
		}
		if (l == one) != (host == "a.example.com") {
			want = "HTTP/1.1 403"
		}
		conn := l.connect()
		group.Go(func() {
			_, _ = io.WriteString(conn, "GET http://"+host+"/ HTTP/1.0\r\n\r\n")
			if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), want) {
				t.Errorf("%s: %q, %v, want %s", host, got, err, want)
			}
		})
	}
	group.Wait()
	for _, e := range append(one.told(), two.told()...) {
		if e.Kind == Decided && e.Decision.Ruling == network.Allow && e.Host != "a.example.com" &&
			e.Host != "b.example.com" {
			t.Errorf("told %+v", e)
		}
	}
}
