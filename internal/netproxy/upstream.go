// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package netproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
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
		conn = tls.Client(raw, &tls.Config{ServerName: a.via.Host.String(), RootCAs: a.s.proxy.UpstreamRoots, MinVersion: tls.VersionTLS12})
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
	if _, err := io.WriteString(conn, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n"+a.authorization()+"\r\n"); err != nil {
		return err
	}
	return readTunnelAnswer(conn)
}

// authorization is the header line with which the request goes to the upstream proxy; empty for none.
func (a *access) authorization() string {
	if value := a.via.Authorization(); value != "" {
		return "Proxy-Authorization: " + value + "\r\n"
	}
	return ""
}

// single reads a byte at a time, so that a reader with a buffer takes nothing that is behind its lines.
type single struct{ io.Reader }

// Read implements io.Reader.
func (s single) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), 1)]) }

// readTunnelAnswer reads the answer to CONNECT, and nothing behind it. Nil means that there is a tunnel.
func readTunnelAnswer(r io.Reader) error {
	p, err := readResponse(bufio.NewReader(single{r}), "CONNECT")
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
	line := strconv.QuoteToASCII(p.start[:min(len(p.start), most)])
	return "it answered " + line[1:len(line)-1]
}

// greetSOCKS asks for a connection as a client of SOCKS5 does. No byte behind the answers is read.
func (a *access) greetSOCKS(conn net.Conn) error {
	var auth *proxy.Auth
	user, password, login := a.via.Login()
	if login {
		auth = &proxy.Auth{User: user, Password: password}
	}
	d, err := proxy.SOCKS5("tcp", a.via.Host.String(), auth, connectedTo{conn})
	if err != nil {
		return err
	}
	by, ok := d.(proxy.ContextDialer)
	if !ok {
		return errors.ErrUnsupported
	}
	_, err = by.DialContext(a.s.ctx, "tcp", a.host())
	var op *net.OpError
	if !errors.As(err, &op) {
		return err
	}
	switch why := op.Err.Error(); {
	case why == "no acceptable authentication methods" && login:
		return errors.New("it does not take a user name and a password")
	case why == "no acceptable authentication methods":
		return errors.New("it asks for a user name and a password")
	case strings.HasPrefix(why, "unknown error "): // so package proxy calls what RFC 1928 knows, too
		return errors.New("it answered: " + strings.TrimPrefix(why, "unknown error "))
	}
	return op.Err
}

// connectedTo is a dialer whose connection is made already.
type connectedTo struct{ net.Conn }

// Dial implements [proxy.Dialer].
func (c connectedTo) Dial(string, string) (net.Conn, error) { return c.Conn, nil }

// DialContext implements [proxy.ContextDialer].
func (c connectedTo) DialContext(context.Context, string, string) (net.Conn, error) {
	return c.Conn, nil
}
