// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// maxInterim is how many responses may come before the final one.
const maxInterim = 16

// A patient connection gives each read and each write a time of its own, and counts bytes.
type patient struct {
	net.Conn
	eager   atomic.Bool // reads have the deadline that others set
	stopped atomic.Bool
	in, out atomic.Int64
}

// Read implements io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	if !p.eager.Load() {
		_ = p.SetReadDeadline(time.Now().Add(idleTime))
		if p.stopped.Load() {
			_ = p.SetReadDeadline(time.Unix(1, 0))
		}
	}
	n, err := p.Conn.Read(b)
	p.in.Add(int64(n))
	return n, err
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	_ = p.SetWriteDeadline(time.Now().Add(idleTime))
	n, err := p.Conn.Write(b)
	p.out.Add(int64(n))
	return n, err
}

// stop ends the read that is under way, and all that follow until resume.
func (p *patient) stop() {
	p.stopped.Store(true)
	_ = p.SetReadDeadline(time.Unix(1, 0))
}

// resume leaves deadlines to others.
func (p *patient) resume() {
	p.eager.Store(true)
	p.stopped.Store(false)
	_ = p.SetReadDeadline(time.Time{})
	_ = p.SetWriteDeadline(time.Time{})
}

// An exchange is one request with its response.
type exchange struct {
	c     *client
	a     *access
	q     *request
	up    *patient
	r     *bufio.Reader // of up
	wrote bool          // the client has got something of the response
	sent  chan bool     // whether the whole body was sent, once that has ended
	whole bool          // it was
	again bool          // another request may follow
	hide  Rewriter      // hides values of credentials in the response; nil for a host that has none

	refused atomic.Pointer[access] // because of its body; nil if it was not
}

func newExchange(c *client, a *access, q *request, conn net.Conn) *exchange {
	up := &patient{Conn: conn}
	return &exchange{c: c, a: a, q: q, up: up, r: bufio.NewReader(up), sent: make(chan bool, 1)}
}

// run forwards the request and its response. The server is asked to close its connection, so that
// nothing of one response can be taken for the next.
func (x *exchange) run(target string, websocket bool) Cause {
	defer func() { x.a.up += x.up.out.Load(); x.a.down += x.up.in.Load() }()
	if _, err := x.up.Write(x.request(target, websocket)); err != nil {
		x.fail("the server closed the connection")
		return Failed
	}
	x.c.in.eager.Store(false)
	if x.q.hasBody() {
		go func() { x.sent <- x.sendBody() }()
	} else {
		x.sent <- true
	}
	cause, switched := x.respond(websocket)
	if !x.isSent() {
		// The response is complete before the request: the rest of that is not needed.
		_ = x.up.Close()
		x.c.in.stop()
	}
	<-x.sent
	x.c.in.resume()
	if switched {
		x.again = false
		_ = x.up.SetWriteDeadline(time.Time{})
		x.a.down -= int64(x.r.Buffered()) // the tunnel counts them
		return x.c.tunnel(x.a, x.up.Conn, x.r, false)
	}
	if !x.again {
		x.c.linger()
	}
	return cause
}

// request is the head of the request, rebuilt from what was judged. An upstream proxy gets it as a client's.
func (x *exchange) request(target string, websocket bool) []byte {
	q, host := x.q, authority(x.a.req)
	DropHops(q.header) // once more: a rule may have set some
	if x.a.absolute() {
		target = "http://" + host + strings.TrimPrefix(target, "*")
		x.a.authorize(q.head)
	}
	q.header.Del("Host")
	q.body.set(q.header)
	q.header.Set("Connection", "close")
	if websocket {
		switching(q.header)
	}
	q.start = q.method + " " + target + " HTTP/1.1\r\nHost: " + host
	return q.bytes()
}

// switching are the headers of a message that begins a websocket.
func switching(h textproto.MIMEHeader) {
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
}

// isSent reports whether the whole request was sent. It does not wait.
func (x *exchange) isSent() bool {
	select {
	case x.whole = <-x.sent:
		x.sent <- x.whole
	default:
	}
	return x.whole
}

// sendBody forwards the body of the request, and reports whether all of it went. A body that is
// malformed or cut ends the connection to the server, which would wait for the rest of it. A server
// that takes no more may still answer.
func (x *exchange) sendBody() bool {
	b := newBody(x.c.r, x.q.body)
	var src io.Reader = b
	if r := x.c.s.command.Rewriter; r != nil {
		src = r.PlainBody(x.a.host(), b)
	}
	err := copyBody(x.up, src, x.q.body.kind == chunked)
	var misuse Misuse
	if errors.As(err, &misuse) {
		refused := &access{s: x.a.s, req: x.a.req, start: x.a.start}
		refused.decide(misused(misuse))
		x.refused.Store(refused)
		_ = x.up.Close()
	}
	if b.err != nil && !errors.Is(b.err, io.EOF) {
		_ = x.up.Close()
	}
	return err == nil
}

// respond forwards the response. Switched means that the connection is a websocket now.
func (x *exchange) respond(websocket bool) (cause Cause, switched bool) {
	for range maxInterim {
		p, err := readResponse(x.r)
		if err != nil {
			x.fail("the response of the server is malformed or was cut: " + wordsOf(err))
			return Failed, false
		}
		frame := framing{kind: sized}
		if p.hasBody(x.q.method) {
			frame = p.body
		}
		body := io.Reader(newBody(x.r, frame))
		if x.hide != nil {
			if body, err = x.hidden(p, body); err != nil {
				x.fail(err.Error())
				return Failed, false
			}
		}
		DropHops(p.header)
		switch {
		case p.status == statusLogin && x.a.absolute():
			x.fail(upstreamError(x.a.via, p.refusal()).Error())
			return Failed, false
		case p.status == 101 && websocket:
			switching(p.header)
			return Ended, x.send(p, framing{}) == nil
		case p.status == 101:
			x.fail("the server switched to a protocol that was not asked for")
			return Failed, false
		case p.status >= 200:
			return x.finish(p, body), false
		case x.q.minor == 1 && x.hide == nil:
			if x.send(p, framing{}) != nil {
				return Failed, false
			}
		}
	}
	x.fail("the server sent too many interim responses")
	return Failed, false
}

// hidden replaces values of credentials in a response, and returns its body. The error is that of the
// Rewriter.
func (x *exchange) hidden(p *response, body io.Reader) (hidden io.Reader, err error) {
	coded := len(p.header["Content-Encoding"]) > 0
	p.reason, hidden, err = x.hide.Hide(x.a.req.Host, p.reason, p.header, body)
	if coded && len(p.header["Content-Encoding"]) == 0 {
		p.body = framing{} // how long it is now is not known
	}
	return hidden, err
}

// finish forwards the final response. What has no length of its own goes on in chunks, and to a
// client that does not know chunks until the connection is closed.
func (x *exchange) finish(p *response, body io.Reader) Cause {
	hasBody := p.hasBody(x.q.method)
	frame := p.body
	switch {
	case hasBody && frame.kind != sized && x.q.minor == 1:
		frame = framing{kind: chunked}
	case frame.kind != sized || p.status == 204:
		frame = framing{}
	}
	if x.again = x.q.keep && x.isSent(); !x.again {
		p.header.Set("Connection", "close")
	}
	err := x.send(p, frame)
	if err == nil && hasBody {
		err = copyBody(x.c.in, body, frame.kind == chunked)
	}
	if err != nil {
		x.again = false
		return Failed
	}
	return Ended
}

// wordsOf is an error without anything that a server has sent.
func wordsOf(err error) string {
	var bad *headError
	switch {
	case errors.As(err, &bad):
		return bad.reason
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "no data arrived in time"
	}
	return "the connection ended"
}

// send writes the head of a response to the client. The framing is that of its body.
func (x *exchange) send(p *response, f framing) error {
	x.wrote = true
	p.start = fmt.Sprintf("HTTP/1.1 %d %s", p.status, p.reason)
	f.set(p.header)
	_, err := x.c.in.Write(p.bytes())
	return err
}

// fail answers for a server that does not, if nothing of its answer has gone to the client.
func (x *exchange) fail(why string) {
	x.again = false
	if refused := x.refused.Load(); refused != nil && !x.wrote {
		_ = x.c.write(x.q.bytesOf(refused.refusal(x.q.wantsWords())))
		x.wrote = true
	}
	if !x.wrote {
		_ = x.c.write(sentence(502, why).bytes(false, true))
	}
}
