// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

const connectAPI = "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n"

// established opens a tunnel.
func (l *lab) established(request, answer string) *net.TCPConn {
	l.t.Helper()
	conn := l.connect()
	if _, err := io.WriteString(conn, request); err != nil {
		l.t.Fatal(err)
	}
	p := make([]byte, len(answer))
	if _, err := io.ReadFull(conn, p); err != nil || string(p) != answer {
		l.t.Fatalf("%q, %v", p, err)
	}
	return conn
}

const connected = "HTTP/1.1 200 Connection established\r\n\r\n"

// TestServerName sends TLS for different names through tunnels to api.example.com, by CONNECT and
// by SOCKS5, whole and a byte at a time: what is refused does not reach the server.
func TestServerName(t *testing.T) {
	name := func(s string) []byte { return clientHello(t, s) }
	short := name("api.example.com")
	binary.BigEndian.PutUint16(short[3:], 4) // the first record ends in the middle
	huge := []byte{22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff}
	for _, test := range []struct {
		name   string
		first  []byte
		strict bool
		want   network.Reason // empty: it goes on
	}{
		{"of the host", name("api.example.com"), false, ""},
		{"in capitals", rename(t, "API.Example.com"), false, ""},
		{"of another that is allowed", name("other.example.com"), false, ""},
		{"of a miss", name("evil.test"), false, network.SNIMismatch},
		{"of a host that is denied", name("denied.example.com"), false, network.SNIMismatch},
		{"malformed", rename(t, "api..example.co"), false, network.SNIMismatch},
		{"an address", rename(t, "93.184.216.341.."), false, network.SNIMismatch},
		{"none", name(""), false, ""},
		{"none, strict", name(""), true, network.SNIMismatch},
		{"of the host, strict", name("api.example.com"), true, ""},
		{"encrypted hello inside", withECH(t, "api.example.com"), false, ""},
		{"encrypted hello inside, strict", withECH(t, "api.example.com"), true, network.SNIMismatch},
		{"encrypted hello inside, of a miss", withECH(t, "evil.test"), false, network.SNIMismatch},
		{"malformed encrypted hello", extend(name("api.example.com"), []byte{0xfe, 0x0d, 0, 1, 0}), false, network.SNIMismatch},
		{"a dot behind", rename(t, "api.example.com."), false, network.SNIMismatch},
		{"twice", twice(t, "api.example.com"), false, network.SNIMismatch},
		{"in two records", split(name("api.example.com"), 60), false, ""},
		{"of a miss in two records", split(name("evil.test"), 60), false, network.SNIMismatch},
		{"of a miss in records of a byte", split(name("evil.test"), 1), false, network.SNIMismatch},
		{"a record that is cut", short, false, network.SNIMismatch},
		{"longer than the bound", append(huge, make([]byte, maxHello)...), false, network.SNIMismatch},
		{"no TLS", []byte("SSH-2.0-client\r\n"), false, ""},
		{"no TLS, strict", []byte("SSH-2.0-client\r\n"), true, ""},
	} {
		for _, way := range []string{"CONNECT", "SOCKS5", "slowly"} {
			t.Run(test.name+"/"+way, func(t *testing.T) {
				got := make(chan []byte, 1)
				origin := listen(t, func(conn net.Conn) {
					all, _ := io.ReadAll(conn)
					got <- all
				})
				policy := makePolicy(t, network.Config{Mode: network.Full, RequireSNI: test.strict},
					"*.example.com", "!denied.example.com")
				l := newLab(t, policy, origin)
				request, answer := connectAPI, connected
				if way == "SOCKS5" {
					request, answer = "\x05\x01\x00\x05\x01\x00\x03\x0fapi.example.com\x01\xbb",
						"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
				}
				conn := l.established(request, answer)
				step := len(test.first)
				if way == "slowly" {
					step = 7
				}
				for rest := test.first; len(rest) > 0; rest = rest[min(step, len(rest)):] {
					if _, err := conn.Write(rest[:min(step, len(rest))]); err != nil {
						break // it was cut
					}
				}
				_ = conn.CloseWrite()
				_, _ = io.Copy(io.Discard, conn)
				l.checkName(<-got, test.first, test.want)
			})
		}
	}
}

// checkName compares what the server got, and what was told.
func (l *lab) checkName(got, sent []byte, want network.Reason) {
	l.t.Helper()
	events := l.settled(1)
	last := events[len(events)-1]
	if want == "" {
		if !bytes.Equal(got, sent) || last.Cause != Ended || last.Up != int64(len(sent)) || len(events) != 2 {
			l.t.Errorf("the server gets %d of %d bytes; told %+v", len(got), len(sent), events)
		}
		return
	}
	if len(got) > 0 || len(events) != 3 || events[1].Decision.Reason != want || last.Cause != SNIRefused {
		l.t.Errorf("the server gets %q; told %+v", got, events)
	}
}

// rename returns a ClientHello with a name that package crypto/tls would not send.
func rename(t *testing.T, name string) []byte {
	t.Helper()
	usual := strings.Repeat("a", len(name)-4) + ".com"
	p := clientHello(t, usual)
	if !bytes.Contains(p, []byte(usual)) {
		t.Fatal("the name is not there")
	}
	return bytes.Replace(p, []byte(usual), []byte(name), 1)
}

const (
	recordHead  = 5 // type, version, length
	messageHead = 4 // type, length
)

// extend adds an extension to a ClientHello of one record.
func extend(p []byte, extension []byte) []byte {
	at := recordHead + messageHead + 34 // version, random
	at += 1 + int(p[at])                // session
	at += 2 + int(binary.BigEndian.Uint16(p[at:]))
	at += 1 + int(p[at]) // compressions
	out := append(bytes.Clone(p), extension...)
	grow := func(at int) {
		binary.BigEndian.PutUint16(out[at:], binary.BigEndian.Uint16(out[at:])+uint16(len(extension)))
	}
	grow(3)
	grow(recordHead + 2)
	grow(at) // the length of the extensions
	return out
}

// withECH has an encrypted hello inside, of one byte.
func withECH(t *testing.T, name string) []byte {
	return extend(clientHello(t, name), []byte{0xfe, 0x0d, 0, 12, 0, 0, 1, 0, 1, 7, 0, 1, 0, 0, 1, 0})
}

// twice names two hosts.
func twice(t *testing.T, name string) []byte {
	data := append([]byte{0, byte(len(name) + 3), 0, 0, byte(len(name))}, name...)
	return extend(clientHello(t, name), append([]byte{0, 0, 0, byte(len(data))}, data...))
}

// split puts the message of one record into several.
func split(p []byte, size int) []byte {
	var out []byte
	for rest := p[recordHead:]; len(rest) > 0; rest = rest[min(size, len(rest)):] {
		part := rest[:min(size, len(rest))]
		out = append(append(out, 22, 3, 1, 0, byte(len(part))), part...)
	}
	return out
}

// TestTLS makes a whole connection through a tunnel.
func TestTLS(t *testing.T) {
	cert := certificate(t)
	origin := listen(t, func(conn net.Conn) {
		s := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}})
		_, _ = io.Copy(s, s)
		_ = s.CloseWrite()
	})
	l := newLab(t, full(t, "api.example.com"), origin)
	c := tls.Client(l.established(connectAPI, connected),
		&tls.Config{ServerName: "api.example.com", InsecureSkipVerify: true})
	text := strings.Repeat("tunnel ", 100_000)
	var group sync.WaitGroup
	group.Go(func() { _, _ = io.WriteString(c, text); _ = c.CloseWrite() })
	got, err := io.ReadAll(c)
	group.Wait()
	if err != nil || string(got) != text {
		t.Errorf("%d of %d bytes, %v", len(got), len(text), err)
	}
}

// TestServerFirst has a server that speaks first: nothing is waited for.
func TestServerFirst(t *testing.T) {
	origin := listen(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "SSH-2.0-server\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
	l := newLab(t, full(t, "api.example.com"), origin)
	conn := l.established("CONNECT api.example.com:22 HTTP/1.0\r\n\r\n", connected+"SSH-2.0-server\r\n")
	_ = conn.CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
	if e := l.settled(1); len(e) != 2 || e[1].Down != int64(len("SSH-2.0-server\r\n")) || e[1].Up != 0 ||
		e[1].Cause != Ended {
		t.Errorf("told %+v", e)
	}
}

// TestEarlyData sends through a tunnel before it stands, more than any buffer of this package.
func TestEarlyData(t *testing.T) {
	text := strings.Repeat("early data ", 10_000)
	l := newLab(t, full(t, "api.example.com"), listen(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) }))
	conn := l.connect()
	var group sync.WaitGroup
	group.Go(func() { _, _ = io.WriteString(conn, connectAPI+text); _ = conn.CloseWrite() })
	all, err := io.ReadAll(conn)
	group.Wait()
	if err != nil || string(all) != connected+text {
		t.Errorf("%d bytes, %v", len(all), err)
	}
	if e := l.settled(1); len(e) != 2 || e[1].Up != int64(len(text)) || e[1].Down != int64(len(text)) {
		t.Errorf("told %+v", e)
	}
}

// TestClose ends a service with all that it has open: every connection is told as interrupted,
// before Close returns, and nothing is told behind it.
func TestClose(t *testing.T) {
	l := newLab(t, full(t, "api.example.com"),
		listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }))
	const tunnels = 10
	for range tunnels {
		l.established(connectAPI, connected)
	}
	reading := l.connect()
	_, _ = io.WriteString(reading, "GET http://api")
	waiting := l.connect()
	_, _ = io.WriteString(waiting, "GET http://api.example.com/ HTTP/1.0\r\n\r\n")
	l.wait(func() bool { return len(l.dialed) == tunnels+1 })
	closed := 0
	events := l.told()
	for _, e := range events {
		if e.Kind == Closed {
			closed++
			if e.Cause != Interrupted && e.Cause != DialFailed {
				t.Errorf("cause %s", e.Cause)
			}
		}
	}
	if closed != tunnels+1 || len(events) != 2*closed {
		t.Errorf("%d ends in %d events", closed, len(events))
	}
	if _, err := net.Dial("tcp", l.addr); err == nil {
		t.Error("the listener is open")
	}
}
