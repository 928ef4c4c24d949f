// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package netproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

const (
	upstreamTime = 10 * time.Second // for an upstream proxy to connect, and to answer so

	methodLogin  = 2 // of SOCKS5, with a user name and a password (RFC 1929)
	loginVersion = 1
	statusLogin  = 407 // of a proxy that asks for a password
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

// greetSOCKS asks for a connection as a client of SOCKS5 does.
func (a *access) greetSOCKS(conn net.Conn) error {
	user, password, login := a.via.Login()
	method := byte(methodNone)
	if login {
		method = methodLogin
	}
	if _, err := conn.Write([]byte{socks5, 1, method}); err != nil {
		return err
	}
	if err := readChoice(conn, method); err != nil {
		return err
	}
	if login {
		p := append([]byte{loginVersion, byte(len(user))}, user...)
		p = append(append(p, byte(len(password))), password...)
		if _, err := conn.Write(p); err != nil {
			return err
		}
		if err := readLogin(conn); err != nil {
			return err
		}
	}
	p := []byte{socks5, commandConnect, 0}
	if addr, ok := a.req.Host.Addr(); ok {
		p = appendTarget(p, netip.AddrPortFrom(addr, a.req.Port))
	} else {
		name := a.req.Host.Name()
		p = append(append(p, addressName, byte(len(name))), name...)
		p = binary.BigEndian.AppendUint16(p, a.req.Port)
	}
	if _, err := conn.Write(p); err != nil {
		return err
	}
	return readSOCKSReply(conn)
}

// readChoice reads which method a SOCKS5 proxy has chosen; the only one that it was offered.
func readChoice(r io.Reader, offered byte) error {
	var p [2]byte
	if _, err := io.ReadFull(r, p[:]); err != nil {
		return err
	}
	switch {
	case p[0] != socks5:
		return errors.New("its answer is not SOCKS5")
	case p[1] != offered && offered == methodLogin:
		return errors.New("it does not take a user name and a password")
	case p[1] != offered:
		return errors.New("it asks for a user name and a password")
	}
	return nil
}

// readLogin reads whether a SOCKS5 proxy accepts the password.
func readLogin(r io.Reader) error {
	var p [2]byte
	if _, err := io.ReadFull(r, p[:]); err != nil {
		return err
	}
	if p[0] != loginVersion || p[1] != 0 {
		return errors.New("it does not accept the user name and the password")
	}
	return nil
}

// socksReplies are the replies of RFC 1928 in words.
var socksReplies = []string{
	1: "general failure", 2: "connection not allowed", 3: "network unreachable", 4: "host unreachable",
	5: "connection refused", 6: "TTL expired", 7: "command not supported", 8: "address type not supported",
}

// readSOCKSReply reads the reply to a request, and nothing behind it. Nil means that there is a connection.
func readSOCKSReply(r io.Reader) error {
	var p [3]byte
	if _, err := io.ReadFull(r, p[:]); err != nil {
		return err
	}
	switch code := int(p[1]); {
	case p[0] != socks5 || p[2] != 0:
		return errors.New("its answer is malformed")
	case code > 0 && code < len(socksReplies):
		return fmt.Errorf("it answered %d (%s)", code, socksReplies[code])
	case code > 0:
		return fmt.Errorf("it answered %d", code)
	}
	_, err := readTarget(r)
	if bad := new(socksError); errors.As(err, &bad) {
		return errors.New("its answer is malformed: " + bad.reason)
	}
	return err
}
