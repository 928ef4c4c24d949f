// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// greetTime is how long a client has to begin, before its connection is taken for one in which the
// server begins.
const greetTime = 250 * time.Millisecond

// Origin says where a connection was going before it was led to a listener: the name that its address
// stands for, or the address. An error has the connection reset.
type Origin func(net.Conn) (host network.Host, port uint16, err error)

// ServeRedirected is [Proxy.Serve] for a listener to which connections of the command are led that
// were going elsewhere. The client knows of no proxy, so what is refused is answered where it speaks
// HTTP, and reset otherwise.
func (p *Proxy) ServeRedirected(l net.Listener, c *Command, origin Origin) *Service {
	return p.start(l, c, origin)
}

// serveRedirected serves a connection that was going elsewhere.
func (c *client) serveRedirected() {
	host, port, err := c.s.origin(c.conn)
	if err != nil {
		c.reset()
		return
	}
	if (port == httpPort || c.s.policy().Mode() == network.Limited) && c.speaksHTTP() {
		c.serveHTTP(func(q *request) bool { return c.forwardOrigin(q, host, port) })
		return
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	a := c.s.newAccess(network.TransparentTCP, "")
	a.req.Host, a.req.Port = host, port
	up, err := a.reach("", c.ask)
	if err != nil || up == nil {
		c.reset()
		return
	}
	defer c.s.drop(up)
	a.closed(c.pass(a, up))
}

// reset ends the connection as a server that refuses does, so that the client does not wait.
func (c *client) reset() {
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// speaksHTTP waits a moment for the first byte and reports whether a request can begin with it. A
// client that has gone, or waits for the server, does not.
func (c *client) speaksHTTP() bool {
	c.within(greetTime)
	first, err := c.r.Peek(1)
	return err == nil && isAlphanumeric(first[0])
}

// forwardOrigin serves a request in the form that servers get, of a connection that was going to a host.
// It is judged as one at a proxy for the host that it names, so that one connection cannot carry what
// is for another host. It reports whether another request may follow.
func (c *client) forwardOrigin(q *request, host network.Host, port uint16) bool {
	method, websocket := q.method, q.isWebsocket()
	if websocket {
		method = "" // what goes through it cannot be seen
	}
	a := c.s.newAccess(network.HTTP, method)
	a.req.Host, a.req.Port = host, port
	var bad network.Reason
	switch {
	case !strings.HasPrefix(q.target, "/") && (q.target != "*" || q.method != "OPTIONS"):
		bad = network.InvalidHost // it is for a proxy, which this is not
	case !q.hasHost && q.minor == 1:
		bad = network.HostMismatch
	case q.hasHost:
		named, at, err := network.ParseAuthority(q.host, port)
		if err != nil {
			a.reject(network.InvalidHost, q.host)
			return c.refuse(a, q)
		}
		if a.req.Host = named; at != port {
			bad = network.HostMismatch
		}
	}
	return c.exchange(a, q, bad, q.target, websocket)
}
