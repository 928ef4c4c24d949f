// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

const (
	httpPort  = 80
	httpsPort = 443
)

// serveHTTP serves requests until one of them is the last. Forward serves one, and reports whether
// another one may follow.
func (c *client) serveHTTP(forward func(*request) bool) {
	for {
		c.within(headTime)
		q, err := readRequest(c.r)
		if err != nil {
			var bad *headError
			if errors.As(err, &bad) {
				_ = c.write(sentence(bad.status, "the request is refused: "+bad.reason).bytes(false, true))
				c.linger()
			}
			return
		}
		_ = c.conn.SetReadDeadline(time.Time{})
		if !forward(q) {
			return
		}
		c.within(keepTime)
		if _, err := c.r.Peek(1); err != nil {
			return
		}
	}
}

// parseTarget splits the absolute form of a target. What is wrong with it but its host is the
// reason bad. Userinfo is cut off, as the host behind it may be denied.
func parseTarget(target string) (authority, path string, bad network.Reason) {
	scheme, rest, ok := strings.Cut(target, "://")
	switch {
	case !ok || strings.Contains(target, "#"):
		return "", "", network.InvalidHost
	case !strings.EqualFold(scheme, "http"):
		return "", "", network.UnsupportedScheme
	}
	authority = rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority, bad = authority[i+1:], network.InvalidHost
	}
	return authority, path, bad
}

// originForm returns the target that a server gets.
func originForm(method, path string) string {
	switch {
	case path == "" && method == "OPTIONS":
		return "*"
	case path == "" || path[0] == '?':
		return "/" + path
	}
	return path
}

// forward serves a request at a proxy: CONNECT, or one in absolute form.
func (c *client) forward(q *request) bool {
	if q.method == "CONNECT" {
		c.connect(q)
		return false
	}
	method, websocket := q.method, q.isWebsocket()
	if websocket {
		method = "" // what goes through it cannot be seen
	}
	a := c.s.newAccess(network.HTTP, method)
	authority, path, bad := parseTarget(q.target)
	if bad == network.UnsupportedScheme {
		a.reject(bad, q.target)
		return c.refuse(a, q)
	}
	var err error
	if a.req.Host, a.req.Port, err = network.ParseAuthority(authority, httpPort); err != nil {
		a.reject(network.InvalidHost, q.target)
		return c.refuse(a, q)
	}
	if bad == "" && !q.isFor(a.req.Host, a.req.Port, httpPort) {
		bad = network.HostMismatch
	}
	return c.exchange(a, q, bad, originForm(q.method, path), websocket)
}

// exchange decides about a request and forwards it, with its target as servers get it. For bad see
// permit. It reports whether another request may follow.
func (c *client) exchange(a *access, q *request, bad network.Reason, target string, websocket bool) bool {
	return c.exchangeBy(a, q, bad, target, websocket, c.ask)
}

// exchangeBy is exchange with who decides where the policy says Ask.
func (c *client) exchangeBy(a *access, q *request, bad network.Reason, target string, websocket bool,
	ask asker) bool {
	DropHops(q.header) // before a rule sets what Connection could name
	if bad == "" {
		if refused := a.rule(q, target); refused != nil {
			a.decide(*refused)
			return c.refuse(a, q)
		}
	}
	if err := a.plain(q); err != nil {
		a.decide(misused(err))
		return c.refuse(a, q)
	}
	up, err := a.reach(bad, ask)
	switch {
	case err != nil:
		return c.answer(q, a.unreachable(err))
	case up == nil:
		return c.refuse(a, q)
	}
	defer c.s.drop(up)
	hide := a.view(c.s.policy()).hide
	if hide && websocket {
		a.closed(Ended)
		refused := &access{s: a.s, req: a.req, start: a.start}
		refused.decide(network.Decision{Ruling: network.Deny, Reason: network.MITMRequired,
			Source: network.ModeGuard})
		return c.refuse(refused, q)
	}
	x := newExchange(c, a, q, up)
	if hide {
		x.hide = c.s.command.Rewriter
		for name := range q.header {
			if Unsearchable(name) {
				delete(q.header, name)
			}
		}
		q.header.Set("Accept-Encoding", "identity")
	}
	a.closed(x.run(target, websocket))
	return x.again
}

// Unsearchable reports whether a header of a request asks for a response in which a value could not be found:
// in part, compressed, or in frames that are.
func Unsearchable(header string) bool {
	return slices.Contains([]string{"range", "request-range", "if-range", "sec-websocket-extensions",
		"accept-encoding"}, strings.ToLower(header))
}

// connect serves a CONNECT request, the last one of its connection.
func (c *client) connect(q *request) {
	a := c.s.newAccess(network.HTTPSConnect, "")
	var err error
	if a.req.Host, a.req.Port, err = network.ParseAuthority(q.target, 0); err != nil {
		a.reject(network.InvalidHost, q.target)
		c.refuse(a, q)
		return
	}
	var bad network.Reason
	if !q.isFor(a.req.Host, a.req.Port, a.req.Port) {
		bad = network.HostMismatch
	}
	if q.body.length > 0 || q.body.kind == chunked {
		_ = c.write(sentence(400, "the request is refused: CONNECT with a body").bytes(false, true))
		return
	}
	up, err := a.reach(bad, c.ask)
	switch {
	case err != nil:
		c.answer(q, a.unreachable(err))
		return
	case up == nil:
		c.refuse(a, q)
		return
	}
	defer c.s.drop(up)
	if c.write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")) != nil {
		a.closed(Failed)
		return
	}
	a.closed(c.pass(a, up))
}

// isFor reports whether the header Host names the target. Only CONNECT and HTTP/1.0 do without.
func (q *request) isFor(host network.Host, port, defaultPort uint16) bool {
	if !q.hasHost {
		return q.minor == 0 || q.method == "CONNECT"
	}
	h, p, err := network.ParseAuthority(q.host, defaultPort)
	return err == nil && h == host && p == port
}

// isWebsocket reports whether the client asks for a websocket.
func (q *request) isWebsocket() bool {
	return q.minor == 1 && q.method == "GET" && !q.hasBody() &&
		Lists(q.header, "Connection", "upgrade") && Lists(q.header, "Upgrade", "websocket")
}

func (q *request) hasBody() bool { return q.body.kind == chunked || q.body.length > 0 }

// refuse answers a request that was not allowed.
func (c *client) refuse(a *access, q *request) bool {
	return c.answer(q, a.refusal(q.wantsWords()))
}

// wantsWords reports whether a refusal is to be a sentence: people read those of CONNECT.
func (q *request) wantsWords() bool {
	return q.method == "CONNECT" && !Lists(q.header, "Accept", "application/json")
}

// unreachable is the answer when no vetted address could be connected to.
func (a *access) unreachable(err error) *Refusal {
	return sentence(502, "cannot connect to "+a.host()+": "+err.Error())
}

// answer sends an answer of ours. It reports whether another request may follow, which it may
// not if there is a body, or if it was CONNECT: what comes then may be meant for another server.
func (c *client) answer(q *request, r *Refusal) bool {
	if c.write(q.bytesOf(r)) != nil {
		return false
	}
	if q.again() {
		return true
	}
	c.linger()
	return false
}

// bytesOf is an answer of ours to the request.
func (q *request) bytesOf(r *Refusal) []byte { return r.bytes(q.method == "HEAD", !q.again()) }

// again reports whether another request may follow an answer of ours.
func (q *request) again() bool { return q.keep && !q.hasBody() && q.method != "CONNECT" }
