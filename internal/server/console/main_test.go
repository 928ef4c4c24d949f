// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func TestMain(m *testing.M) {
	testenv.MostlyWait()
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

// A clock is the time of a console.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A running is a console that serves.
type running struct {
	*Server
	t       *testing.T
	clock   *clock
	address string
	port    string
	up      chan wire.Stream // the exec-server's ends of the connections that were made
	stop    func()
}

// start serves a console at an address until the test ends, or stop.
func start(t *testing.T, o Options, address string) *running {
	t.Helper()
	r := &running{t: t, clock: &clock{now: time.Unix(1_800_000_000, 0)}, up: make(chan wire.Stream,
		2*maxPages)}
	if o.Now == nil {
		o.Now = r.clock.Now
	}
	if o.Dial == nil {
		o.Dial = func(context.Context) (wire.Stream, error) {
			a, b := net.Pipe()
			r.up <- wire.LinesOn(a)
			return wire.LinesOn(b), nil
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if r.Server, err = New(o, l.Addr()); err != nil {
		t.Fatal(err)
	}
	r.address, r.port = l.Addr().String(), r.Server.port
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- r.Serve(ctx, l) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// An answer is one of HTTP.
type answer struct {
	*http.Response
	body string
}

// send sends bytes, in which ADDR and PORT are replaced, on a connection of its own and returns the answer.
func (r *running) send(request string) answer {
	r.t.Helper()
	conn, a := r.dial(request)
	_ = conn.Close()
	return a
}

// dial is send, and leaves the connection open.
func (r *running) dial(request string) (net.Conn, answer) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	request = strings.NewReplacer("ADDR", r.address, "PORT", r.port).Replace(request)
	if _, err := io.WriteString(conn, request); err != nil {
		r.t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	method, _, _ := strings.Cut(request, " ")
	response, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		r.t.Fatalf("%.200q: %v", request, err)
	}
	a := answer{Response: response}
	if response.StatusCode != http.StatusSwitchingProtocols {
		body, _ := io.ReadAll(response.Body)
		a.body = string(body)
	}
	return &buffered{conn, in}, a
}

// A buffered connection is read through a buffer.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// A keys are the secrets of a page.
type keys struct{ cookie, secret string }

// enter exchanges a token.
func (r *running) enter(token string) (keys, answer) {
	r.t.Helper()
	body, _ := json.Marshal(map[string]string{"token": token})
	a := r.send(fmt.Sprintf("POST /session HTTP/1.1\r\nHost: ADDR\r\nOrigin: http://ADDR\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	var k keys
	for _, c := range a.Cookies() {
		k.cookie = c.Value
	}
	var s session
	_ = json.Unmarshal([]byte(a.body), &s) // of an error there is none
	k.secret = s.Secret
	return k, a
}

// mustEnter is enter with a new token.
func (r *running) mustEnter() keys {
	r.t.Helper()
	k, a := r.enter(r.Token())
	if a.StatusCode != http.StatusOK || k.cookie == "" || k.secret == "" {
		r.t.Fatalf("status %d, %q", a.StatusCode, a.body)
	}
	return k
}

// headers are those of a request with both secrets.
func (k keys) headers() string { return k.cookieHeader() + k.secretHeader() }

func (k keys) cookieHeader() string { return "Cookie: sallyport-PORT=" + k.cookie + "\r\n" }

func (k keys) secretHeader() string { return "X-Sallyport-Secret: " + k.secret + "\r\n" }

// upgrade is the request for a WebSocket, with further headers.
func upgrade(headers string) string {
	return "GET /ws HTTP/1.1\r\nHost: ADDR\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" + headers + "\r\n"
}

func (k keys) upgrade() string {
	return upgrade("Origin: http://ADDR\r\n" + k.cookieHeader() +
		"Sec-WebSocket-Protocol: sallyport, sallyport.secret." +
		k.secret + "\r\n")
}

// A page is a WebSocket of a page, and the connection of the exec-server for it.
type page struct {
	t    *testing.T
	conn net.Conn
	up   wire.Stream
}

// open opens a WebSocket.
func (r *running) open(k keys) *page {
	r.t.Helper()
	conn, a := r.dial(k.upgrade())
	r.t.Cleanup(func() { _ = conn.Close() })
	if a.StatusCode != http.StatusSwitchingProtocols ||
		a.Header.Get("Sec-Websocket-Protocol") != "sallyport" {
		r.t.Fatalf("status %d, subprotocol %q: %q", a.StatusCode, a.Header.Get("Sec-Websocket-Protocol"),
			a.body)
	}
	p := &page{t: r.t, conn: conn, up: <-r.up}
	r.t.Cleanup(func() { _ = p.up.Close() })
	return p
}

// send sends a text message (RFC 6455, 5.2).
func (p *page) send(text string) {
	p.t.Helper()
	head := []byte{0x81, 0x80 | 126, 0, 0}
	binary.BigEndian.PutUint16(head[2:], uint16(len(text)))
	if _, err := p.conn.Write(append(append(head, 0, 0, 0, 0), text...)); err != nil { // the mask is zero
		p.t.Fatal(err)
	}
}

// receive returns the next message, or the status of the end with its reason.
func (p *page) receive() (text string, status int) {
	p.t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(p.conn, head); err != nil {
		p.t.Fatal(err)
	}
	size := int(head[1])
	if size == 126 {
		if _, err := io.ReadFull(p.conn, head[:2]); err != nil {
			p.t.Fatal(err)
		}
		size = int(binary.BigEndian.Uint16(head))
		head[0] = 0x81
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(p.conn, body); err != nil {
		p.t.Fatal(err)
	}
	if head[0] == 0x88 {
		return string(body[2:]), int(binary.BigEndian.Uint16(body))
	}
	return string(body), 0
}

// expect fails the test if the next message is another one.
func (p *page) expect(want string) {
	p.t.Helper()
	if got, status := p.receive(); got != want || status != 0 {
		p.t.Fatalf("the page got %s (%d), want %s", got, status, want)
	}
}

// upstream fails the test if the exec-server gets another message next.
func (p *page) upstream(want string) {
	p.t.Helper()
	got, err := p.up.Read()
	if err != nil || !bytes.Equal(got, []byte(want)) {
		p.t.Fatalf("the exec-server got %s (%v), want %s", got, err, want)
	}
}

// says has the exec-server send a message.
func (p *page) says(text string) {
	p.t.Helper()
	if err := p.up.Write([]byte(text)); err != nil {
		p.t.Fatal(err)
	}
}
