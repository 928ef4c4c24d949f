// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/proxy"

	"github.com/sallyport-dev/sallyport/network"
)

const (
	upstreamTime = 10 * time.Second // for an upstream proxy to connect, and to answer so

	statusLogin = 407 // of a proxy that asks for a password
	methodLogin = 2   // of SOCKS5, with a user name and a password (RFC 1929)
)

// upstreamError is the end of a try to connect by an upstream proxy. Its text has no password.
func upstreamError(proxy *network.UpstreamProxy, why string) error {
	return fmt.Errorf("upstream proxy %s: %s", proxy, why)
}

// viaUpstream connects to the host by the upstream proxy of the request. The host is not resolved:
// its name is sent as it is. The connection ends with the Service.
func (a *access) viaUpstream() (net.Conn, error) {
	// A user's name for a proxy is often a short one.
	addrs, err := a.s.lookUp(a.via.Host, a.via.Host.Name())
	if err != nil {
		return nil, a.upstreamFailed(errors.New("its name has no address"))
	}
	raw, _, err := a.dial(hop{addrs: addrs, port: a.via.Port, check: func(to netip.AddrPort) error {
		for _, addr := range addrs {
			if to == netip.AddrPortFrom(addr.Unmap(), a.via.Port) {
				return nil
			}
		}
		return errNotVetted
	}})
	if err != nil {
		return nil, a.upstreamFailed(err)
	}
	conn := raw
	if a.via.Scheme == network.UpstreamHTTPS {
		conn = tls.Client(raw, &tls.Config{ServerName: a.via.Host.String(), RootCAs: a.s.proxy.UpstreamRoots,
			MinVersion: tls.VersionTLS12})
	}
	if !a.s.hold(conn, a) {
		return nil, net.ErrClosed
	}
	_ = conn.SetDeadline(time.Now().Add(upstreamTime))
	if err := a.greetUpstream(conn); err != nil {
		a.s.drop(conn)
		return nil, a.upstreamFailed(err)
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// upstreamFailed is the error of a try.
func (a *access) upstreamFailed(err error) error {
	why := err.Error()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		why = "no answer in time"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		why = "it closed the connection without an answer"
	}
	return upstreamError(a.via, why)
}

// absolute reports whether the request goes to the upstream proxy as it is, and not in a tunnel.
// Proxies often make tunnels to a few ports only, and port 80 is not among them.
func (a *access) absolute() bool {
	plain := a.req.Protocol == network.HTTP && a.req.Method != "" // and no websocket
	return plain && a.via != nil && a.via.Scheme != network.UpstreamSOCKS5
}

// greetUpstream says to an upstream proxy what it is needed for. It reads no byte of the tunnel.
func (a *access) greetUpstream(conn net.Conn) error {
	if t, ok := conn.(*tls.Conn); ok {
		if err := t.HandshakeContext(a.s.ctx); err != nil {
			return err
		}
	}
	switch {
	case a.absolute():
		return nil
	case a.via.Scheme == network.UpstreamSOCKS5:
		return a.greetSOCKS(conn)
	}
	to := a.host()
	h := &head{"CONNECT " + to + " HTTP/1.1\r\nHost: " + to, textproto.MIMEHeader{}}
	a.authorize(h)
	if _, err := conn.Write(h.bytes()); err != nil {
		return err
	}
	return readTunnelAnswer(conn)
}

// authorize has the upstream proxy accept a request.
func (a *access) authorize(h *head) {
	if value := a.via.Authorization(); value != "" {
		h.header.Set("Proxy-Authorization", value)
	}
}

// single reads a byte at a time, so that a reader with a buffer takes nothing that is behind its lines.
type single struct{ io.Reader }

// Read implements io.Reader.
func (s single) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), 1)]) }

// readTunnelAnswer reads the answer to CONNECT, and nothing behind it. Nil means that there is a tunnel.
func readTunnelAnswer(r io.Reader) error {
	p, err := readResponse(bufio.NewReader(single{r}))
	if bad := new(headError); errors.As(err, &bad) {
		return errors.New("its answer is malformed: " + bad.reason)
	}
	if err != nil {
		return err
	}
	if p.status < 200 || p.status > 299 {
		return errors.New(p.refusal())
	}
	return nil
}

// refusal is the status line of an upstream proxy that refuses.
func (p *response) refusal() string {
	const most = 200
	version, _, _ := strings.Cut(p.start, " ")
	line := fmt.Sprintf("%s %d %s", version, p.status, p.reason)
	line = strconv.QuoteToASCII(line[:min(len(line), most)])
	return "it answered " + line[1:len(line)-1]
}

// greetSOCKS asks for a connection as a client of SOCKS5 does. No byte behind the answers is read.
func (a *access) greetSOCKS(conn net.Conn) error {
	offer := &oneMethod{Conn: conn}
	var auth *proxy.Auth
	if user, password, login := a.via.Login(); login {
		auth = &proxy.Auth{User: user, Password: password}
		offer.method = methodLogin
	}
	d, err := proxy.SOCKS5("tcp", a.via.Host.String(), auth, offer)
	if err != nil {
		return err
	}
	by, ok := d.(proxy.ContextDialer)
	if !ok {
		return errors.ErrUnsupported
	}
	_, err = by.DialContext(a.s.ctx, "tcp", a.host())
	if op := new(net.OpError); errors.As(err, &op) {
		err = op.Err
	}
	// Package proxy calls so what RFC 1928 knows, too.
	if why, ok := strings.CutPrefix(fmt.Sprint(err), "unknown error "); ok {
		return errors.New("it answered: " + why)
	}
	return err
}

// oneMethod is a connection to a SOCKS5 proxy that is made already, on which one method of
// authentication is offered and no other is accepted. Package proxy offers to go on without the
// password that is set, and goes on with a method that it did not offer.
type oneMethod struct {
	net.Conn
	method         byte
	offered, taken bool
}

// Dial implements [proxy.Dialer].
func (c *oneMethod) Dial(string, string) (net.Conn, error) { return c, nil }

// DialContext implements [proxy.ContextDialer].
func (c *oneMethod) DialContext(context.Context, string, string) (net.Conn, error) { return c, nil }

// Write implements io.Writer. The first of all is the offer.
func (c *oneMethod) Write(p []byte) (int, error) {
	if c.offered {
		return c.Conn.Write(p)
	}
	c.offered = true
	if _, err := c.Conn.Write([]byte{socks5, 1, c.method}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Read implements io.Reader. The first of all is the answer to the offer, of two bytes.
func (c *oneMethod) Read(p []byte) (int, error) {
	if c.taken {
		return c.Conn.Read(p)
	}
	c.taken = true
	n, err := io.ReadAtLeast(c.Conn, p, 2)
	switch {
	case err != nil || p[0] != socks5 || p[1] == c.method:
		return n, err
	case c.method == methodLogin:
		return 0, errors.New("it does not accept a user name and password; remove them from its URL")
	}
	return 0, errors.New("it requires a user name and password; add them to its URL")
}
