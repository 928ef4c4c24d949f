// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

const (
	corpHTTP  = "http://proxy.corp:3128"
	corpLogin = "http://dev:s3cret@proxy.corp:3128"
	corpAuth  = "Proxy-Authorization: Basic ZGV2OnMzY3JldA==\r\n"
	corpAddr  = "10.9.8.7:3128"
)

// upstreamOf is the policy with entries and an upstream.
func upstreamOf(t testing.TB, setting string, entries ...string) *network.Policy {
	t.Helper()
	u, err := network.ParseUpstream(setting, nil)
	if err != nil {
		t.Fatal(err)
	}
	return makePolicy(t, network.Config{Mode: network.Full, Upstream: u}, entries...)
}

// corp gives the proxy its address.
func corp(l *lab) { l.zone.names["proxy.corp"] = []string{"10.9.8.7"} }

// checkAsked fails unless no name but the proxy's was asked for, and nothing but it dialed.
func (l *lab) checkAsked() {
	l.t.Helper()
	for _, name := range l.zone.questions() {
		if name != "proxy.corp" {
			l.t.Errorf("%s was asked for", name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, to := range l.dialed {
		if to != corpAddr {
			l.t.Errorf("%s was dialed", to)
		}
	}
}

// scripted is an upstream that reads a head, tells it, answers, and then echoes.
func scripted(got chan<- string, answer string) func(net.Conn) {
	return func(conn net.Conn) {
		r := bufio.NewReader(conn)
		var text strings.Builder
		for !strings.HasSuffix(text.String(), "\r\n\r\n") {
			line, err := r.ReadString('\n')
			text.WriteString(line)
			if err != nil {
				break
			}
		}
		got <- text.String()
		_, _ = io.WriteString(conn, answer)
		if strings.HasPrefix(answer, "HTTP/1.1 2") || strings.HasPrefix(answer, "HTTP/1.0 2") {
			_, _ = io.Copy(conn, r)
		}
	}
}

// TestUpstreamConnect has proxies answer CONNECT in all ways.
func TestUpstreamConnect(t *testing.T) {
	const asked = "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n"
	for _, test := range []struct {
		name, setting, answer string
		ahead                 string // of the tunnel; "-" for none: refused
		want                  string // part of the refusal
	}{
		{"no password", corpHTTP, "HTTP/1.1 200 OK\r\n\r\n", "", ""},
		{"password", corpLogin, "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n", "", ""},
		{"HTTP/1.0", corpHTTP, "HTTP/1.0 200 OK\r\n\r\n", "", ""},
		{"a length", corpHTTP, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "", ""},
		{"early bytes", corpLogin, "HTTP/1.1 201 OK\r\n\r\nSSH-2.0-x\r\n", "SSH-2.0-x\r\n", ""},
		{"asks for a password", corpHTTP, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n", "-", "it answered HTTP/1.1 407 Proxy Authentication Required"},
		{"refuses", corpLogin, "HTTP/1.1 403 Not for you\r\nContent-Length: 3\r\n\r\nno\n", "-", "it answered HTTP/1.1 403 Not for you"},
		{"gateway", corpLogin, "HTTP/1.1 503 \xff\x9b\r\n\r\n", "-", `it answered HTTP/1.1 503 \xff\x9b`},
		{"interim", corpHTTP, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "-", "it answered HTTP/1.1 100 Continue"},
		{"switches", corpHTTP, "HTTP/1.1 101 Switching\r\n\r\n", "-", "101 Switching"},
		{"another protocol", corpHTTP, "SSH-2.0-OpenSSH\r\n\r\n", "-", "its answer is malformed: malformed status line"},
		{"lines without CR", corpHTTP, "HTTP/1.1 200 OK\n\n", "-", "its answer is malformed: a line does not end with CR LF"},
		{"control byte", corpHTTP, "HTTP/1.1 200 O\x1bK\r\n\r\n", "-", "control byte"},
		{"two lengths", corpHTTP, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "-", "malformed"},
		{"huge head", corpHTTP, "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 66<<10) + "\r\n\r\n", "-", "the head is longer than allowed"},
		{"many headers", corpHTTP, "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 129) + "\r\n", "-", "more than 128 headers"},
		{"half a head", corpHTTP, "HTTP/1.1 404 OK\r\n", "-", "it closed the connection without an answer"},
		{"nothing", corpHTTP, "", "-", "it closed the connection without an answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := make(chan string, 1)
			l := newLab(t, upstreamOf(t, test.setting, "*.example.com"),
				listen(t, scripted(got, test.answer)), corp)
			head := asked + "\r\n"
			if test.setting == corpLogin {
				head = asked + corpAuth + "\r\n"
			}
			if test.ahead == "-" {
				answer := l.send(connectAPI)
				if !strings.HasPrefix(answer, "HTTP/1.1 502 ") || !strings.Contains(answer, test.want) ||
					strings.Contains(answer, "s3cret") || strings.Contains(answer, "ZGV2") {
					t.Errorf("%q", answer)
				}
			} else {
				conn := l.established(connectAPI, connected+test.ahead)
				if _, err := io.WriteString(conn, "ping"); err != nil {
					t.Fatal(err)
				}
				_ = conn.CloseWrite()
				if all, err := io.ReadAll(conn); string(all) != "ping" || err != nil {
					t.Errorf("%q, %v", all, err)
				}
			}
			if text := <-got; text != head {
				t.Errorf("the proxy got %q, want %q", text, head)
			}
			last := l.settled(1)[1]
			if (last.Cause == DialFailed) != (test.ahead == "-") || last.Resolved.IsValid() {
				t.Errorf("%+v", last)
			}
			l.checkAsked()
		})
	}
}

// TestUpstreamDead: a proxy that cannot be connected to, or has no address.
func TestUpstreamDead(t *testing.T) {
	for _, test := range []struct {
		name, want string
		change     func(*lab)
	}{
		{"refuses connections", "upstream proxy http://***@proxy.corp:3128: dial tcp: connection refused", corp},
		{"unknown", "its name has no address", func(*lab) {}},
		{"another address", "not vetted", func(l *lab) {
			corp(l)
			l.proxy.Dial = func(_ context.Context, d *net.Dialer, kind, _ string) (net.Conn, error) {
				return nil, d.Control(kind, "10.9.8.8:3128", nil)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, upstreamOf(t, corpLogin, "*.example.com"), "", test.change)
			if got := l.send(connectAPI); !strings.Contains(got, " 502 ") ||
				!strings.Contains(got, test.want) {
				t.Errorf("%q", got)
			}
			l.checkAsked()
		})
	}
}

// TestUpstreamPlain: plain HTTP goes to the proxy in absolute form, with its password and not the client's.
func TestUpstreamPlain(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nProxy-Authenticate: x\r\n\r\nok"
	for _, test := range []struct{ name, sent, head, answer, want string }{
		{"GET", "GET http://API.example.com./a?b HTTP/1.1\r\nHost: api.example.com\r\nProxy-Authorization: Basic bWluZQ==\r\nProxy-Connection: keep-alive\r\n\r\n",
			"GET http://api.example.com/a?b HTTP/1.1\r\nHost: api.example.com\r\n" + "Connection: close\r\n" +
				corpAuth + "\r\n", ok, "ok"},
		{"port", "POST http://api.example.com:8080 HTTP/1.1\r\nHost: api.example.com:8080\r\nContent-Length: 0\r\n\r\n",
			"POST http://api.example.com:8080/ HTTP/1.1\r\nHost: api.example.com:8080\r\n" +
				"Connection: close\r\nContent-Length: 0\r\n" + corpAuth + "\r\n", ok, "ok"},
		{"OPTIONS", "OPTIONS http://api.example.com HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
			"OPTIONS http://api.example.com HTTP/1.1\r\nHost: api.example.com\r\n" + "Connection: close\r\n" +
				corpAuth + "\r\n", ok, "ok"},
		{"password refused", "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
			"GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n" + "Connection: close\r\n" +
				corpAuth + "\r\n",
			"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
			"upstream proxy http://***@proxy.corp:3128: it answered HTTP/1.1 407 Who are you"},
		{"websocket", "GET http://api.example.com/ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
			"CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com:80\r\n" + corpAuth + "\r\n",
			"HTTP/1.1 403 no\r\n\r\n", "it answered HTTP/1.1 403 no"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := make(chan string, 1)
			l := newLab(t, upstreamOf(t, corpLogin, "*.example.com"),
				listen(t, scripted(got, test.answer)), corp)
			if answer := l.send(test.sent); !strings.Contains(answer, test.want) ||
				strings.Contains(answer, "Authenticate") || strings.HasPrefix(answer, "HTTP/1.1 407") {
				t.Errorf("%q", answer)
			}
			if head := <-got; head != test.head {
				t.Errorf("the proxy got %q, want %q", head, test.head)
			}
			l.checkAsked()
		})
	}
}

// TestUpstreamSOCKS has SOCKS5 proxies answer in all ways.
func TestUpstreamSOCKS(t *testing.T) {
	const (
		none    = "socks5h://proxy.corp:3128"
		login   = "socks5://dev:s3cret@proxy.corp:3128"
		hello   = "\x05\x01\x00"
		helloPW = "\x05\x01\x02"
		pw      = "\x01\x03dev\x06s3cret"
		to      = "\x05\x01\x00\x03\x0fapi.example.com\x01\xbb"
		done    = "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
	)
	type step struct{ sent, answer string }
	type row struct {
		name, setting string
		steps         []step
		ahead, want   string // as in TestUpstreamConnect
	}
	rows := []row{
		{"no password", none, []step{{hello, "\x05\x00"}, {to, done}}, "", ""},
		{"password", login, []step{{helloPW, "\x05\x02"}, {pw, "\x01\x00"}, {to, done}}, "", ""},
		{"a name is bound", none, []step{{hello, "\x05\x00"}, {to, "\x05\x00\x00\x03\x04host\x00\x50"}}, "", ""},
		{"IPv6 is bound, early bytes", none, []step{{hello, "\x05\x00"}, {to, "\x05\x00\x00\x04" + strings.Repeat("\x00", 18) + "hi"}}, "hi", ""},
		{"wants a password", none, []step{{hello, "\x05\xff"}}, "-", "it requires a user name and password; add them to its URL"},
		{"chooses what was not offered", none, []step{{hello, "\x05\x02"}}, "-", "it requires a user name and password; add them to its URL"},
		{"takes none", login, []step{{helloPW, "\x05\xff"}}, "-", "it does not accept a user name and password; remove them from its URL"},
		{"goes on without", login, []step{{helloPW, "\x05\x00"}}, "-", "it does not accept a user name and password; remove them from its URL"},
		{"wrong password", login, []step{{helloPW, "\x05\x02"}, {pw, "\x01\x01"}}, "-", "username/password authentication failed"},
		{"another version of the password", login, []step{{helloPW, "\x05\x02"}, {pw, "\x05\x00"}}, "-", "invalid username/password version"},
		{"HTTP", none, []step{{hello, "HTTP/1.1 400 Bad Request\r\n\r\n"}}, "-", "unexpected protocol version"},
		{"SOCKS4", none, []step{{hello, "\x00\x5a"}}, "-", "unexpected protocol version"},
		{"half an answer", none, []step{{hello, "\x05\x00"}, {to, "\x05\x00\x00\x01\x00"}}, "-", "it closed the connection without an answer"},
		{"no answer", none, []step{{hello, ""}}, "-", "it closed the connection without an answer"},
		{"a reply of another version", none, []step{{hello, "\x05\x00"}, {to, "\x04\x00\x00\x01\x00\x00\x00\x00\x00\x00"}}, "-", "unexpected protocol version 4"},
		{"a reserved byte", none, []step{{hello, "\x05\x00"}, {to, "\x05\x00\x01\x01\x00\x00\x00\x00\x00\x00"}}, "-", "non-zero reserved field"},
		{"an unknown type of address", none, []step{{hello, "\x05\x00"}, {to, "\x05\x00\x00\x02\x00\x00"}}, "-", "unknown address type 2"},
		{"reply 200", none, []step{{hello, "\x05\x00"}, {to, "\x05\xc8\x00\x01\x00\x00\x00\x00\x00\x00"}}, "-", "it answered: unknown code: 200"},
	}
	for code, text := range map[rune]string{1: "general SOCKS server failure",
		2: "connection not allowed by ruleset", 3: "network unreachable",
		4: "host unreachable", 5: "connection refused", 6: "TTL expired", 7: "command not supported",
		8: "address type not supported"} {
		rows = append(rows, row{text, none, []step{{hello, "\x05\x00"},
			{to, "\x05" + string(code) + "\x00\x01\x00\x00\x00\x00\x00\x00"}}, "-", "it answered: " + text})
	}
	for _, test := range rows {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, upstreamOf(t, test.setting, "*.example.com"), listen(t, func(conn net.Conn) {
				for _, s := range test.steps {
					p := make([]byte, len(s.sent))
					if _, err := io.ReadFull(conn, p); err != nil || string(p) != s.sent {
						t.Errorf("the proxy got %q, want %q (%v)", p, s.sent, err)
						return
					}
					_, _ = io.WriteString(conn, s.answer)
				}
				if test.ahead != "-" {
					_, _ = io.Copy(conn, conn)
				}
			}), corp)
			if test.ahead == "-" {
				if got := l.send(connectAPI); !strings.HasPrefix(got, "HTTP/1.1 502 ") ||
					!strings.Contains(got, test.want) || strings.Contains(got, "s3cret") {
					t.Errorf("%q", got)
				}
				l.checkAsked()
				return
			}
			conn := l.established(connectAPI, connected+test.ahead)
			if _, err := io.WriteString(conn, "ping"); err != nil {
				t.Fatal(err)
			}
			_ = conn.CloseWrite()
			if all, err := io.ReadAll(conn); string(all) != "ping" || err != nil {
				t.Errorf("%q, %v", all, err)
			}
			l.checkAsked()
		})
	}
}

// TestUpstreamAddress: an address goes to a SOCKS5 proxy as one, and by SOCKS5 of the client, too.
func TestUpstreamAddress(t *testing.T) {
	for _, test := range []struct{ host, want string }{
		{"93.184.216.34", "\x05\x01\x00\x01\x5d\xb8\xd8\x22\x01\xbb"},
		{"[2606:2800::1]", "\x05\x01\x00\x04\x26\x06\x28\x00" + strings.Repeat("\x00", 11) + "\x01\x01\xbb"},
	} {
		t.Run(test.host, func(t *testing.T) {
			l := newLab(t, upstreamOf(t, "socks5h://proxy.corp:3128", test.host),
				listen(t, func(conn net.Conn) {
					p := make([]byte, 3+len(test.want))
					_, _ = io.ReadFull(conn, p[:3])
					_, _ = io.WriteString(conn, "\x05\x00")
					_, _ = io.ReadFull(conn, p[3:])
					if string(p[3:]) != test.want {
						t.Errorf("%q", p)
					}
					_, _ = io.WriteString(conn, "\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00")
				}), corp)
			if got := l.send("CONNECT " + test.host + ":443 HTTP/1.1\r\n\r\n"); !strings.Contains(got,
				"connection refused") {
				t.Errorf("%q", got)
			}
			l.checkAsked()
		})
	}
}

// TestUpstreamLocal: what is on this machine or protected is judged and dialed here, and what is refused
// reaches no proxy.
func TestUpstreamLocal(t *testing.T) {
	for _, test := range []struct {
		name, target string
		entries      []string
		dialed       string // empty: refused
	}{
		{"localhost", "localhost:3000", []string{"localhost:3000"}, "127.0.0.1:3000"},
		{"below localhost", "x.localhost:3000", []string{"*.localhost"}, "127.0.0.1:3000"},
		{"loopback", "127.0.0.1:3000", []string{"127.0.0.1"}, "127.0.0.1:3000"},
		{"loopback, short", "127.1:3000", []string{"127.0.0.1"}, "127.0.0.1:3000"},
		{"IPv6 loopback", "[::1]:3000", []string{"[::1]"}, "[::1]:3000"},
		{"private", "10.1.2.3:3000", []string{"10.1.0.0/16"}, "10.1.2.3:3000"},
		{"metadata", "169.254.169.254:80", []string{"169.254.169.254"}, "169.254.169.254:80"},
		{"this machine", "93.184.216.1:3000", []string{"93.184.216.1"}, "93.184.216.1:3000"},
		{"localhost, refused", "localhost:3000", []string{"*"}, ""},
		{"loopback, refused", "127.0.0.1:3000", []string{"*"}, ""},
		{"metadata, refused", "169.254.169.254:80", []string{"*"}, ""},
		{"mapped, refused", "[::ffff:10.1.2.3]:3000", []string{"*"}, ""},
		{"a name, refused", "evil.test:443", []string{"*.example.com"}, ""},
		{"a public address, refused", "93.184.216.34:443", []string{"*"}, ""},
	} {
		for _, setting := range []string{corpHTTP, "socks5h://proxy.corp:3128"} {
			t.Run(test.name+"/"+setting, func(t *testing.T) {
				u, err := network.ParseUpstream(setting, nil)
				if err != nil {
					t.Fatal(err)
				}
				c := network.Config{Mode: network.Full, Upstream: u,
					HostAddrs: []netip.Addr{netip.MustParseAddr("93.184.216.1")}}
				l := newLab(t, makePolicy(t, c, test.entries...), "", corp)
				want := "HTTP/1.1 502 "
				if test.dialed == "" {
					want = "HTTP/1.1 403 "
				}
				if got := l.send("CONNECT " + test.target +
					" HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, want) {
					t.Errorf("%q", got)
				}
				l.close()
				if (len(l.dialed) > 0) != (test.dialed != "") || len(l.dialed) > 0 &&
					l.dialed[0] != test.dialed || slices.Contains(l.dialed, corpAddr) {
					t.Errorf("dialed %q, want %q", l.dialed, test.dialed)
				}
				if asked := l.zone.questions(); len(asked) > 0 {
					t.Errorf("asked for %q", asked)
				}
			})
		}
	}
}

// TestUpstreamRedirected: connections that are redirected go by the proxy, too, by their name.
func TestUpstreamRedirected(t *testing.T) {
	for _, test := range []struct{ name, to, sent, head string }{
		{"TLS", "api.example.com:443", "\x00", "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n" + corpAuth + "\r\n"},
		{"HTTP", "api.example.com:80", "GET /a HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "GET http://api.example.com/a HTTP/1.1\r\nHost: api.example.com\r\n" + "Connection: close\r\n" + corpAuth + "\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := make(chan string, 1)
			host, port, err := network.ParseAuthority(test.to, 0)
			if err != nil {
				t.Fatal(err)
			}
			l := newLab(t, upstreamOf(t, corpLogin, "*.example.com"), listen(t, scripted(got, okResponse)),
				corp, func(l *lab) {
					l.from = func(net.Conn) (network.Host, uint16, error) { return host, port, nil }
				})
			l.send(test.sent)
			if head := <-got; head != test.head {
				t.Errorf("the proxy got %q, want %q", head, test.head)
			}
			l.checkAsked()
		})
	}
}

// TestUpstreamDatagrams: no proxy forwards datagrams, and they do not go past it.
func TestUpstreamDatagrams(t *testing.T) {
	l := newLab(t, upstreamOf(t, corpHTTP, "*.example.com", "93.184.216.34", "127.0.0.1"), "", corp)
	for text, want := range map[string]bool{"api.example.com": false, "93.184.216.34": false,
		"127.0.0.1": true} {
		a := l.service.newAccess(network.SOCKS5UDP, "")
		a.req.Host, _ = network.ParseHost(text)
		a.req.Port = 53
		if _, ok := a.permit("", nil); ok != want {
			t.Errorf("%s: %v", text, ok)
		}
	}
	l.checkAsked()
}

// TestUpstreamTimes: a proxy that does not answer is given up in time, as one that cannot be reached.
func TestUpstreamTimes(t *testing.T) {
	for _, test := range []struct {
		name string
		dial func(*lab)
		want time.Duration
	}{
		{"silent", silent, upstreamTime},
		{"unreachable", func(l *lab) {
			l.proxy.Dial = func(ctx context.Context, _ *net.Dialer, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, dialTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, connect := newPipes(t, upstreamOf(t, corpHTTP, "*.example.com"), corp, test.dial)
				conn := connect()
				begun := time.Now()
				if _, err := io.WriteString(conn, connectAPI); err != nil {
					t.Fatal(err)
				}
				line, err := bufio.NewReader(conn).ReadString('\n')
				if err != nil || !strings.HasPrefix(line, "HTTP/1.1 502") {
					t.Errorf("%q, %v", line, err)
				}
				if took := time.Since(begun); took != test.want {
					t.Errorf("after %v, want %v", took, test.want)
				}
				conn.Close()
				l.close()
			})
		})
	}
}

// TestUpstreamClose: the end of the Service ends a connection that waits for a proxy.
func TestUpstreamClose(t *testing.T) {
	reached := make(chan struct{})
	l := newLab(t, upstreamOf(t, corpHTTP, "*.example.com"), listen(t, func(conn net.Conn) {
		close(reached)
		_, _ = io.Copy(io.Discard, conn)
	}), corp)
	conn := l.connect()
	if _, err := io.WriteString(conn, connectAPI); err != nil {
		t.Fatal(err)
	}
	<-reached
	begun := time.Now()
	l.close()
	if time.Since(begun) > upstreamTime/2 {
		t.Error("it waited for the proxy")
	}
}

// TestUpstreamTLS: a proxy inside TLS is known by its certificate.
func TestUpstreamTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"proxy.corp"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, setting string
		trusted       bool
		want          string
	}{
		{"trusted", "https://dev:s3cret@proxy.corp:3128", true, connected},
		{"not trusted", "https://dev:s3cret@proxy.corp:3128", false, "certificate"},
		{"of another name", "https://dev:s3cret@other.corp:3128", true, "certificate is valid for proxy.corp, not other.corp"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := make(chan string, 1)
			upstream := scripted(got, "HTTP/1.1 200 OK\r\n\r\n")
			l := newLab(t, upstreamOf(t, test.setting, "*.example.com"), listen(t, func(conn net.Conn) {
				upstream(tls.Server(conn,
					&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der},
						PrivateKey: key}}}))
			}), corp, func(l *lab) {
				l.zone.names["other.corp"] = []string{"10.9.8.7"}
				if l.proxy.UpstreamRoots = x509.NewCertPool(); test.trusted {
					l.proxy.UpstreamRoots.AddCert(parsed)
				}
			})
			if test.want != connected {
				if answer := l.send(connectAPI); !strings.Contains(answer, " 502 ") ||
					!strings.Contains(answer, test.want) {
					t.Errorf("%q", answer)
				}
				if head := <-got; head != "" {
					t.Errorf("the proxy got %q", head)
				}
				return
			}
			conn := l.established(connectAPI, connected)
			if head := <-got; !strings.Contains(head, corpAuth) {
				t.Errorf("%q", head)
			}
			if _, err := io.WriteString(conn, "ping"); err != nil {
				t.Fatal(err)
			}
			p := make([]byte, 4)
			if _, err := io.ReadFull(conn, p); err != nil || string(p) != "ping" {
				t.Errorf("%q, %v", p, err)
			}
		})
	}
}

// FuzzTunnelAnswer: what is behind the head of an answer is left, and only 2xx is a tunnel.
func FuzzTunnelAnswer(f *testing.F) {
	for _, s := range []string{"HTTP/1.1 200 OK\r\n\r\nrest", "HTTP/1.0 407 No\r\nX: y\r\n\r\n",
		"HTTP/1.1 200 OK\n\n", "SSH-2.0\r\n", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		r := bytes.NewReader(p)
		err := readTunnelAnswer(r)
		read := p[:len(p)-r.Len()]
		if len(read) > maxHead+1 {
			t.Fatalf("%d bytes were read", len(read))
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && len(err.Error()) > 1<<10 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if !bytes.HasPrefix(read, []byte("HTTP/1.")) || !bytes.HasSuffix(read, []byte("\r\n\r\n")) ||
			bytes.Count(read, []byte("\r\n\r\n")) != 1 || read[9] != '2' {
			t.Fatalf("%q is a tunnel", read)
		}
	})
}

// FuzzSOCKSAnswers: the answers of a SOCKS5 proxy take their bytes and no more.
func FuzzSOCKSAnswers(f *testing.F) {
	for _, s := range []string{"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00rest",
		"\x05\x02\x01\x00\x05\x00\x00\x03\x01x\x00\x00", "\x05\xff", "\x05\x00\x05\x05\x00\x01"} {
		f.Add([]byte(s), byte(0))
		f.Add([]byte(s), byte(2))
	}
	f.Fuzz(func(t *testing.T, p []byte, offered byte) {
		setting, method := "socks5h://proxy.corp:3128", byte(0)
		if offered == 2 {
			method = 2
			setting = "socks5h://dev:s3cret@proxy.corp:3128"
		}
		policy := upstreamOf(t, setting, "*.example.com")
		a := (&Service{ctx: t.Context()}).newAccess(network.SOCKS5TCP, "")
		a.req.Host, a.req.Port = mustHost(t, "api.example.com"), 443
		a.via = policy.Upstream(a.req)
		conn := &script{in: p, piece: 1}
		if a.greetSOCKS(conn) != nil {
			return
		}
		at := 2
		if offered == 2 {
			at += 2
		}
		size := map[byte]int{addressIPv4: 4, addressIPv6: 16}[p[at+3]]
		if p[at+3] == addressName {
			size = 1 + int(p[at+4])
		}
		if p[0] != 5 || p[1] != method || p[at] != 5 || p[at+1] != 0 || len(p)-len(conn.in) != at+4+size+2 {
			t.Fatalf("%q is a connection, with %d bytes left", p, len(conn.in))
		}
	})
}
