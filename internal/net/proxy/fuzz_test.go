// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/sallyport-dev/sallyport/network"
)

// FuzzHead reads requests. One that is accepted is rebuilt into one that reads the same, with
// one Host, one length, and nothing of a proxy; its body is read without a byte of what follows.
func FuzzHead(f *testing.F) {
	for _, text := range []string{
		"GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
		"POST http://a:1/?q HTTP/1.0\r\nContent-Length: 3\r\nConnection: x\r\nX: y\r\n\r\nabc",
		"POST http://a/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: u\r\n\r\nGET",
		"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "GET /\r\n", "\r\n\r\n",
		"A B HTTP/1.1\r\nX : y\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	policy := full(f, "api.example.com")
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := readRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			var bad *headError
			if !errors.As(err, &bad) && !errors.Is(err, io.EOF) {
				t.Fatalf("error %v", err)
			}
			return
		}
		authority, path, bad := parseTarget(q.target)
		host, port, err := network.ParseAuthority(authority, httpPort)
		if err != nil || bad != "" {
			return
		}
		r := network.Request{Host: host, Port: port, Method: q.method}
		if policy.Decide(r).Ruling == network.Allow && host.Name() != "api.example.com" {
			t.Fatalf("%q is allowed", host)
		}
		body := q.body
		DropHops(q.header)
		x := &exchange{a: &access{req: r}, q: q}
		rebuilt := string(x.request(originForm(q.method, path), false))
		again, err := readRequest(bufio.NewReader(strings.NewReader(rebuilt)))
		if err != nil && !strings.Contains(err.Error(), "128 headers") &&
			!strings.Contains(err.Error(), "longer") {
			t.Fatalf("%v in %q", err, rebuilt)
		}
		if err == nil && (again.body != body || again.method != q.method || !again.hasHost ||
			again.header["Proxy-Authorization"] != nil) {
			t.Fatalf("%q became %q", data, rebuilt)
		}
	})
}

// FuzzBody reads bodies in chunks, and writes them anew: a strict reader has the same data, and the
// end of one that is malformed is never written.
func FuzzBody(f *testing.F) {
	for _, text := range []string{"3\r\nabc\r\n0\r\n\r\n", "1;a=b\r\nx\r\n0\r\nA: b\r\n\r\nrest", "-1\r\n",
		"0\r\n", "fffffffffffffffff\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		source := newBody(bufio.NewReader(bytes.NewReader(data)), framing{kind: chunked})
		err := copyBody(&out, source, true)
		again, againErr := io.ReadAll(newBody(bufio.NewReader(bytes.NewReader(out.Bytes())),
			framing{kind: chunked}))
		if (err == nil) != (againErr == nil) {
			t.Fatalf("%q: %v, and then %v", data, err, againErr)
		}
		if !bytes.Contains(data, again) && bytes.Count(data, []byte("\n")) < 3 {
			t.Fatalf("%q gives %q", data, again)
		}
	})
}

// FuzzResponse reads responses. One that is accepted is sent as one that reads the same.
func FuzzResponse(f *testing.F) {
	for _, text := range []string{
		okResponse, "HTTP/1.1 101 x\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0 204\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 2\r\n\r\nok",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := readResponse(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return
		}
		if p.status < 100 || p.status > 999 || p.hasBody("HEAD") {
			t.Fatalf("%+v", p)
		}
		to := &script{}
		x := &exchange{c: &client{in: &patient{Conn: to}}}
		DropHops(p.header)
		if err := x.send(p, p.body); err != nil {
			t.Fatal(err)
		}
		again, err := readResponse(bufio.NewReader(&to.out))
		if err == nil && (again.status != p.status || again.body != p.body ||
			len(again.header["Connection"]) > 0) {
			t.Fatalf("%q became %+v", data, again)
		}
	})
}

// FuzzSOCKS reads greetings and requests, and datagrams. What is allowed is the one name.
func FuzzSOCKS(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x0fapi.example.com\x00\x50"))
	f.Add([]byte("\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x04" + strings.Repeat("\xff", 18)))
	f.Add([]byte(toAPI + "data"))
	policy := full(f, "api.example.com")
	check := func(t *testing.T, to socksTarget) {
		if policy.Decide(network.Request{Protocol: network.SOCKS5TCP, Host: to.host,
			Port: to.port}).Ruling == network.Allow &&
			!strings.EqualFold(strings.TrimSuffix(to.raw, "."), "api.example.com") {
			t.Fatalf("%q is allowed", to.raw)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		if _, err := readGreeting(r); err == nil {
			if _, to, err := readSOCKS(r); err == nil {
				check(t, to)
			}
		}
		if to, rest, ok := parseDatagram(data); ok {
			check(t, to)
			if !bytes.HasSuffix(data, rest) {
				t.Fatalf("%q is no end of %q", rest, data)
			}
		}
	})
}

// FuzzHello reads messages of TLS. What is whole stays what it is with more behind it, also a byte at a time.
func FuzzHello(f *testing.F) {
	f.Add(clientHello(f, "api.example.com"))
	f.Add(clientHello(f, ""))
	f.Add(split(clientHello(f, "api.example.com"), 40))
	f.Add([]byte{22, 3, 1, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		h, read, err := readHello(bytes.NewReader(data))
		if err != nil {
			if h != (hello{}) || read != nil {
				t.Fatalf("%+v of a hello that is not whole", h)
			}
			return
		}
		if !bytes.HasPrefix(data, read) || len(read) > maxHello {
			t.Fatalf("%q is no beginning of %q", read, data)
		}
		if len(data) < maxHello {
			if more, _, err := readHello(iotest.OneByteReader(bytes.NewReader(append(bytes.Clone(data),
				0)))); more != h || err != nil {
				t.Fatalf("%+v became %+v", h, more)
			}
		}
		if h.name != "" && !bytes.Contains(data, []byte(h.name[:1])) {
			t.Fatalf("%q is not there", h.name)
		}
		if _, _, err := readHello(bytes.NewReader(data[:recordHead])); !errors.Is(err, io.EOF) &&
			!errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("the head of a record: %v", err)
		}
	})
}

// FuzzFirstLine compares with readers that take the words of a line, as several servers do: what they
// take for the first line of a request is one.
func FuzzFirstLine(f *testing.F) {
	for _, text := range []string{"GET / HTTP/1.1\r\n", "GET\v/\fHTTP/1.0\n", "\x1cGET /\x85HTTP/1.1\xa0\n",
		"SSH-2.0-x\r\n", "PRI * HTTP/2.0\r\n", "GET /\n", "\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		is := isRequestLine(line)
		words := bytes.FieldsFunc(line, func(r rune) bool { return r < 0x80 && isBlank(byte(r)) })
		begins := len(words) == 3 && httpguts.ValidHeaderFieldName(string(words[0])) &&
			bytes.HasPrefix(words[2], []byte("HTTP/1.")) && !bytes.ContainsFunc(line, isBinary)
		if begins && bytes.HasSuffix(line, []byte("\n")) && !is {
			t.Fatalf("%q is no request", line)
		}
		if is && !bytes.Contains(bytes.ToUpper(line), []byte("HTTP/")) {
			t.Fatalf("%q is a request", line)
		}
	})
}

// A script is a connection whose other side has sent a text, piece by piece, and keeps what it gets.
type script struct {
	net.Conn
	in    []byte
	piece int
	out   bytes.Buffer
}

func (s *script) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), s.piece)], s.in)
	if s.in = s.in[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (s *script) Write(p []byte) (int, error)    { return s.out.Write(p) }
func (*script) SetDeadline(time.Time) error      { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) Close() error                     { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }

// FuzzScreen passes what a client sends in a tunnel. A server that reads requests of it has none for
// another host.
func FuzzScreen(f *testing.F) {
	const evil = "GET /evil HTTP/1.1\r\nHost: evil.test\r\n\r\n"
	for _, text := range []string{
		evil, "\r\n\n" + evil, "GET https://evil.test/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "x\r\n" +
			evil, "\x00" + evil,
		"POST / HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 3\r\n\r\nabc" + evil,
		"POST / HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + evil,
		"GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n" + evil,
		"CONNECT evil.test:1 HTTP/1.1\r\n\r\n",
	} {
		f.Add([]byte(text), 1)
		f.Add([]byte(text), 4096)
	}
	policy := full(f, "api.example.com")
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		if piece < 1 {
			return
		}
		s := &Service{proxy: &Proxy{}, command: &Command{Policy: func() *network.Policy { return policy }}}
		a := s.newAccess(network.HTTPSConnect, "")
		a.req.Host, a.req.Port, _ = network.ParseAuthority("api.example.com:80", 0)
		client, server := &script{in: bytes.Clone(data), piece: piece}, &script{}
		tun := &tunnel{a: a}
		tun.up.from, tun.up.to, tun.up.ahead = client, server, bufio.NewReader(client)
		tun.up.last.Store(time.Now().UnixNano())
		_ = (&screen{t: tun, f: &tun.up, other: &tun.down}).run()
		for r := bufio.NewReader(&server.out); ; {
			q, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			h, _, err := network.ParseAuthority(q.Host, 80)
			if q.ProtoMajor == 1 && q.Method != "CONNECT" && q.Host != "" &&
				(err != nil || h.String() != "api.example.com") {
				t.Fatalf("%q reached the server for %q", data, q.Host)
			}
			if _, err := io.Copy(io.Discard, q.Body); err != nil {
				return
			}
		}
	})
}
