// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// Interceptor opens TLS. It is an interface because this package must not link net/http.
type Interceptor interface {
	network.Inspector
	// Intercept serves the requests of a TLS client until its connection ends, and returns when
	// nothing of it is left.
	Intercept(*Intercepted)
	// Rewriter returns what changes the requests; nil for nothing.
	Rewriter() Rewriter
	// Bundle returns the certificates that a client must trust. It may be called again.
	Bundle() (*Bundle, error)
}

// A Bundle is certificates in the forms that programs read.
type Bundle struct {
	PEM    []byte
	PKCS12 []byte // for Java, without a password
}

// Rewriter changes requests and responses of intercepted connections. What an [Interceptor] calls
// beside Intercepts is between the two.
type Rewriter interface {
	// Intercepts reports whether a host gets a credential at a port, so that TLS to it is to be opened.
	Intercepts(host network.Host, port uint16) bool
	// Guards reports whether a host gets a credential at any port. It may give it back at each.
	Guards(host network.Host) bool
	// Names returns the hosts that get credentials, as far as they are known by name.
	Names() []network.Host
	// Plain returns an error for the target, or a value of a header, of a request over plain HTTP that
	// has a credential. Host is for people.
	Plain(host, value string) error
	// PlainBody returns a body that fails where it has a credential.
	PlainBody(host string, body io.Reader) io.Reader
	// Hide returns the reason and the body of a response over plain HTTP without the values of
	// credentials, and takes them from its headers. A body is decoded where that can be done, and the
	// headers do not name its coding any more; otherwise the error refuses the response. It has nothing
	// of it.
	Hide(host network.Host, reason string, header map[string][]string,
		body io.Reader) (string, io.Reader, error)
}

// Misuse is the error of a Rewriter for a credential in a request that it is not for.
type Misuse interface {
	error
	Credential() string // its name
}

// misused is the decision about a request that a Rewriter refused.
func misused(err error) network.Decision {
	d := network.Decision{Ruling: network.Deny, Reason: network.CredentialMisuse,
		Source: network.BaselinePolicy}
	var m Misuse
	if errors.As(err, &m) {
		d.Entry = &network.Entry{Pattern: "credential " + m.Credential(), Deny: true,
			Source: "network.credentials"}
	}
	return d
}

// Intercepted is a connection whose TLS is to be opened.
type Intercepted struct {
	Context context.Context // ends with the Service
	Conn    net.Conn        // to the client, from the first byte of TLS; the Interceptor closes it
	Host    network.Host    // that the client has asked for, normalized
	Port    uint16
	// Dial connects to an address of the host that was vetted.
	Dial func() (net.Conn, error)
	// Judge decides about a request. Without a Refusal it passes, changed as the rule says; nil for none.
	Judge    func(Inner) (*Refusal, *network.RequestRule)
	Rewriter Rewriter // nil for none
	// Guarded says that responses may have the value of a credential, whether the host gets one or not.
	Guarded bool
}

// Inner is what is known of a request inside TLS.
type Inner struct {
	network.HTTPRequest
	Authority string // Host, or :authority, as it arrived
	Upgrade   bool   // it asks for another protocol, in which requests cannot be seen
	Refused   error  // by the Rewriter; nil if it was not
}

// Refusal is the answer to a request that was refused.
type Refusal struct {
	Status            int
	Kind, Error, Body string // content-type, x-proxy-error (may be empty), and the body
}

// beginsRequest waits for the first line of the client, and reports whether a server may take it for
// that of a request. It does not wait for the end of what is certainly none.
func (c *client) beginsRequest() bool {
	c.within(headTime)
	defer func() { _ = c.conn.SetReadDeadline(time.Time{}) }()
	for {
		p, _ := c.r.Peek(c.r.Buffered())
		text := trimBlanks(p)
		end := bytes.IndexByte(text, '\n')
		switch {
		case len(text) > 0 && !isAlphanumeric(text[0]) || bytes.ContainsFunc(text[:max(end, 0)], isBinary):
			return false
		case end >= 0:
			return isRequestLine(text[:end+1])
		case bytes.ContainsFunc(text, isBinary):
			return false
		case len(p) == c.r.Size():
			return true
		}
		if _, err := c.r.Peek(len(p) + 1); err != nil {
			return true // and so says who reads it
		}
	}
}

// plain returns the error of a Rewriter for the head of a request over plain HTTP, if its host is not
// refused anyway.
func (a *access) plain(q *request) error {
	r := a.s.command.Rewriter
	if r == nil {
		return nil
	}
	if d := a.s.policy().Decide(a.req); d.Ruling != network.Allow && d.Ruling != network.Ask {
		return nil
	}
	if err := r.Plain(a.host(), q.target); err != nil {
		return err
	}
	for _, values := range q.header {
		for _, value := range values {
			if err := r.Plain(a.host(), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// freshTime is how long a connection that was made for a CONNECT is kept for the first request.
const freshTime = 3 * time.Second

// An interception is one connection whose TLS is opened.
type interception struct {
	c *client
	a *access

	mu     sync.Mutex
	first  net.Conn // made already; nil once it is used
	others []*heldConn
}

// A heldConn ends with the Service, with its permission, and when the server is silent for too long.
type heldConn struct {
	patient
	s *Service
	a *access
}

// Close implements net.Conn.
func (h *heldConn) Close() error { h.s.drop(h.Conn); return nil }

// pass connects the client with a server that was reached for it: TLS is opened where the policy, or the
// Rewriter, asks for that, and requests without TLS are served one by one. Where the policy asks, or the host
// gets a credential at this port, nothing else passes.
func (c *client) pass(a *access, up net.Conn) Cause {
	if a.own {
		return c.tunnel(a, up, nil, false)
	}
	policy := c.s.policy()
	required := policy.Inspects(a.req.Host, a.req.Port)
	see := a.view(policy)
	if see == (policyView{}) {
		return c.pipe(a, up, nil)
	}
	ahead, err := c.begin(up, see.all)
	if err != nil {
		return Ended // it has sent nothing
	}
	first, _ := c.r.Peek(min(c.r.Buffered(), 1))
	interceptor, able := policy.Inspector().(Interceptor)
	able = able && (policy.Intercepts(a.req.Host, a.req.Port) || !required &&
		policy.Uninspected(a.req.Host, a.req.Port) == nil)
	switch {
	case len(first) == 0 && !see.all: // the server begins
	case len(first) > 0 && first[0] == recordHandshake && able:
		return c.intercept(a, up, interceptor, see)
	case len(first) > 0 && first[0] == recordHandshake:
		return c.refuseInside(a, network.MITMRequired)
	case required && policy.Mode() == network.Limited:
		return c.refuseInside(a, network.MethodNotAllowed)
	case required:
		return c.refuseInside(a, network.MITMRequired)
	case len(first) > 0 && c.beginsRequest():
		c.s.drop(up) // each request has a connection of its own
		c.serveHTTP(func(q *request) bool { return c.forwardInside(a, q) })
		return Ended
	case see.all:
		return c.refuseInside(a, network.MITMRequired)
	}
	a.shut = true // no TLS and no request may come late
	return c.pipe(a, up, ahead)
}

// begin waits until the client or the server sends something, or with clientFirst for the client alone,
// and only for a while. It returns what was read of the server. The error says that there is nothing to
// wait for.
func (c *client) begin(up net.Conn, clientFirst bool) (ahead *bufio.Reader, err error) {
	if clientFirst {
		c.within(headTime)
		_, err := c.r.Peek(1)
		_ = c.conn.SetReadDeadline(time.Time{})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
		return nil, err
	}
	ahead = bufio.NewReader(up)
	deadline := time.Now().Add(idleTime)
	_ = up.SetReadDeadline(deadline)
	c.within(idleTime)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := ahead.Peek(1); err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			_ = c.conn.SetReadDeadline(time.Unix(1, 0))
		}
	}()
	_, err = c.r.Peek(1)
	_ = up.SetReadDeadline(time.Unix(1, 0))
	<-done
	_ = up.SetReadDeadline(time.Time{})
	_ = c.conn.SetReadDeadline(time.Time{})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return ahead, err
}

// forwardInside serves a request, as servers get them, in a tunnel or a connection that was led here, to
// a host that has to be looked at. It reports whether another request may follow.
func (c *client) forwardInside(tunnel *access, q *request) bool {
	a := c.s.newAccess(tunnel.req.Protocol, q.method)
	a.req.Host, a.req.Port = tunnel.req.Host, tunnel.req.Port
	var bad network.Reason
	switch {
	case !strings.HasPrefix(q.target, "/") && (q.target != "*" || q.method != "OPTIONS"):
		bad = network.InvalidHost // it is for a proxy, which the host is not
	case !q.isFor(a.req.Host, a.req.Port, a.req.Port):
		bad = network.HostMismatch
	}
	if tunnel.answered {
		return c.exchangeBy(a, q, bad, q.target, false,
			func(network.Request) network.Decision { return tunnel.decision })
	}
	return c.exchange(a, q, bad, q.target, false)
}

// pipe is tunnel for what the policy does not want to look into. One that does from now on ends it. Ahead has
// what was read of the server before; nil for nothing.
func (c *client) pipe(a *access, up net.Conn, ahead *bufio.Reader) Cause {
	a.blind.Store(true)
	if !a.stands(c.s.policy()) { // it changed in this moment
		c.reset()
		return Revoked
	}
	return c.tunnel(a, up, ahead, true)
}

// refuseInside tells that what the client sends in a connection is not allowed.
func (c *client) refuseInside(a *access, reason network.Reason) Cause {
	refused := access{s: a.s, req: a.req, start: a.start}
	refused.decide(network.Decision{Ruling: network.Deny, Reason: reason, Source: network.ModeGuard})
	c.reset()
	return Failed
}

// intercept has the TLS of a client opened.
func (c *client) intercept(a *access, up net.Conn, by Interceptor, see policyView) Cause {
	a.opened = true
	before := c.in.in.Load() - int64(c.r.Buffered())
	hello, err := a.readHello(c.conn, c.r)
	switch {
	case errors.Is(err, errSNI):
		return SNIRefused
	case err != nil:
		return Failed
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	sent := c.in.out.Load()
	i := &interception{c: c, a: a, first: up}
	by.Intercept(&Intercepted{
		Context: c.s.ctx, Conn: &replayed{Conn: c.in, r: io.MultiReader(bytes.NewReader(hello), c.r)},
		Host: a.req.Host, Port: a.req.Port, Dial: i.dial, Judge: i.judge, Rewriter: c.s.command.Rewriter,
		Guarded: see.hide,
	})
	i.end()
	a.up, a.down = c.in.in.Load()-before, c.in.out.Load()-sent
	if c.s.ctx.Err() != nil {
		return Interrupted
	}
	return Ended
}

// A replayed connection begins with what was read of it before.
type replayed struct {
	net.Conn
	r io.Reader
}

// Read implements io.Reader.
func (r *replayed) Read(p []byte) (int, error) { return r.r.Read(p) }

// dial returns a connection to the server: the one that is made already, or another one.
func (i *interception) dial() (net.Conn, error) {
	i.mu.Lock()
	first := i.first
	i.first = nil
	i.mu.Unlock()
	if first != nil && time.Since(i.a.start) < freshTime {
		return &heldConn{patient: patient{Conn: first}, s: i.a.s, a: i.a}, nil
	}
	a := &access{s: i.a.s, req: i.a.req, decision: i.a.decision, answered: i.a.answered, via: i.a.via,
		start: i.a.start}
	conn, err := a.open(i.a.addrs)
	if err != nil {
		return nil, err
	}
	held := &heldConn{patient: patient{Conn: conn}, s: a.s, a: a}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.others = append(i.others, held)
	return held, nil
}

// end closes what is left of the connections to the server.
func (i *interception) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, h := range i.others {
		if _ = h.Close(); h.a.revoked.Load() {
			i.a.revoked.Store(true)
		}
	}
}

// judge decides about a request by the policy of now. Its host is that of the connection, so an answer
// that has allowed the connection allows the host.
func (i *interception) judge(q Inner) (*Refusal, *network.RequestRule) {
	a := i.a.s.newAccess(i.a.req.Protocol, q.Method)
	a.req.Host, a.req.Port = i.a.req.Host, i.a.req.Port
	policy := a.s.policy()
	d := policy.Decide(a.req)
	host, port, err := network.ParseAuthority(q.Authority, httpsPort)
	switch {
	case err != nil || q.Method == "":
		d = network.Decision{Ruling: network.Reject, Reason: network.InvalidHost,
			Source: network.BaselinePolicy}
	case host != a.req.Host || port != a.req.Port:
		d = network.Decision{Ruling: network.Reject, Reason: network.HostMismatch,
			Source: network.BaselinePolicy}
	case q.Refused != nil:
		d = misused(q.Refused)
	case d.Ruling == network.Ask && i.a.answered:
		d.Ruling = network.Allow
	case i.a.answered && d.Reason == network.NotAllowed:
		d.Reason, d.Source = network.MethodNotAllowed, network.ModeGuard // nothing else refuses such a host
	}
	if d.Ruling == network.Allow && policy.Mode() == network.Limited &&
		(q.Upgrade || overridden(&q.HTTPRequest)) {
		d = network.Decision{Ruling: network.Deny, Reason: network.MethodNotAllowed,
			Source: network.ModeGuard}
	}
	var rule *network.RequestRule
	if d.Ruling == network.Allow {
		d, rule = policy.DecideRequest(a.req.Host, a.req.Port, q.HTTPRequest)
	}
	if d.Ruling == network.Allow {
		return nil, rule
	}
	a.decide(d)
	return a.refusal(false), nil
}

// overridden reports whether a request stands for another method, for servers that read that from a header,
// and the mode limited does not permit it.
func overridden(q *network.HTTPRequest) bool {
	return slices.ContainsFunc(q.Overrides(), func(m string) bool {
		return m != "GET" && m != "HEAD" &&
			m != "OPTIONS"
	})
}

// rule decides about a request over plain HTTP by the mode and the request rules, and changes it as a rule
// says. A refusal is not yet told; it is nil where the host is refused anyway.
func (a *access) rule(q *request, target string) *network.Decision {
	policy := a.s.policy()
	if d := policy.Decide(a.req); d.Ruling != network.Allow && d.Ruling != network.Ask {
		return nil
	}
	seen := network.HTTPRequest{Method: q.method, Target: target, Header: q.header}
	if policy.Mode() == network.Limited && overridden(&seen) {
		return &network.Decision{Ruling: network.Deny, Reason: network.MethodNotAllowed,
			Source: network.ModeGuard}
	}
	d, rule := policy.DecideRequest(a.req.Host, a.req.Port, seen)
	if d.Ruling != network.Allow {
		return &d
	}
	Change(q.header, rule)
	return nil
}
