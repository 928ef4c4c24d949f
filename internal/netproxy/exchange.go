// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package netproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"slices"
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
	if _, err := x.up.Write(x.head(target, websocket)); err != nil {
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

// head is the head of the request. An upstream proxy gets it as a client's.
func (x *exchange) head(target string, websocket bool) []byte {
	if !x.a.absolute() {
		return x.q.rebuild(target, x.a.req, "", websocket)
	}
	if target == "*" {
		target = ""
	}
	return x.q.rebuild("http://"+authority(x.a.req)+target, x.a.req, x.a.authorization(), websocket)
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
		p, err := readResponse(x.r, x.q.method)
		if err != nil {
			x.fail("the response of the server is malformed or was cut: " + wordsOf(err))
			return Failed, false
		}
		switch {
		case p.status == statusLogin && x.a.absolute():
			if x.hide != nil {
				p.start = x.hide.Hide(p.start) // before it is cut: it may be that of the host
			}
			x.fail(upstreamError(x.a.via, p.refusal()).Error())
			return Failed, false
		case p.status == 101 && websocket:
			return Ended, x.send(p.rebuild(framing{}, "Connection: Upgrade\r\nUpgrade: websocket\r\n")) == nil
		case p.status == 101:
			x.fail("the server switched to a protocol that was not asked for")
			return Failed, false
		case p.status >= 200:
			return x.finish(p), false
		case x.q.minor == 1 && x.hide == nil:
			if x.send(p.rebuild(framing{}, "")) != nil {
				return Failed, false
			}
		}
	}
	x.fail("the server sent too many interim responses")
	return Failed, false
}

// finish forwards the final response. What has no length of its own goes on in chunks, and to a
// client that does not know chunks until the connection is closed.
func (x *exchange) finish(p *response) Cause {
	var body io.Reader = newBody(x.r, p.body)
	if x.hide != nil {
		var err error
		if body, err = x.hidden(p, body); err != nil {
			x.fail(err.Error())
			return Failed
		}
	}
	frame := p.declared
	hasBody := p.body.kind != emptyBody
	switch {
	case !hasBody && (p.status < 200 || p.status == 204 || frame.kind != sized):
		frame = framing{}
	case hasBody && frame.kind != sized:
		frame = framing{kind: chunked}
		if x.q.minor == 0 {
			frame = framing{kind: untilClose}
		}
	}
	x.again = x.q.keep && x.isSent()
	connection := ""
	if !x.again {
		connection = "Connection: close\r\n"
	}
	err := x.send(p.rebuild(frame, connection))
	if err == nil && hasBody {
		err = copyBody(x.c.in, body, frame.kind == chunked)
	}
	if err != nil {
		x.again = false
		return Failed
	}
	return Ended
}

// hidden replaces values of credentials in a response, and returns its body. The error is that of the Rewriter.
func (x *exchange) hidden(p *response, body io.Reader) (io.Reader, error) {
	hidden, decoded, err := x.hide.HideBody(x.a.req.Host, p.values("Content-Encoding"), body)
	if err != nil {
		return nil, err
	}
	if decoded {
		p.fields = slices.DeleteFunc(p.fields, func(f field) bool { return strings.EqualFold(f.name, "Content-Encoding") })
		if p.declared.kind == sized {
			p.declared = framing{kind: untilClose} // how long it is now is not known
		}
	}
	p.reason = x.hide.Hide(p.reason)
	kept := p.fields[:0]
	for _, f := range p.fields {
		if value, ok := x.hide.HideField(f.name, f.value); ok {
			kept = append(kept, field{f.name, value})
		}
	}
	p.fields = kept
	return hidden, nil
}

// wordsOf is an error without anything that a server has sent.
func wordsOf(err error) string {
	var bad *headError
	switch {
	case errors.As(err, &bad):
		return bad.reason
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "nothing came for too long"
	}
	return "the connection ended"
}

// send writes to the client.
func (x *exchange) send(b []byte) error {
	x.wrote = true
	_, err := x.c.in.Write(b)
	return err
}

// fail answers for a server that does not, if nothing of its answer has gone to the client.
func (x *exchange) fail(why string) {
	x.again = false
	if refused := x.refused.Load(); refused != nil && !x.wrote {
		_ = x.c.write(refused.refusal(x.q, x.c.s.command))
		x.wrote = true
	}
	if !x.wrote {
		_ = x.c.write(lastAnswer(502, why))
	}
}
