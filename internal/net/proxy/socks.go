// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// Numbers of SOCKS5 (RFC 1928).
const (
	methodNone   = 0
	methodRefuse = 0xff

	commandConnect   = 1
	commandAssociate = 3

	addressIPv4 = 1
	addressName = 3
	addressIPv6 = 4

	replyOK          = 0
	replyFailed      = 1
	replyNotAllowed  = 2
	replyNetwork     = 3
	replyHost        = 4
	replyRefused     = 5
	replyUnsupported = 7
	replyAddressType = 8
)

// A socksError is a request that is refused as malformed or unsupported, with its reply.
type socksError struct {
	reply  byte
	reason string
}

// Error returns the reason.
func (e *socksError) Error() string { return e.reason }

// A socksTarget is a host and port as they arrived. The host is the zero one if it was refused.
type socksTarget struct {
	raw  string
	host network.Host
	port uint16
}

// readGreeting reads the first message of a client, and reports whether it does without
// authentication.
func readGreeting(r *bufio.Reader) (bool, error) {
	var begin [2]byte
	if _, err := io.ReadFull(r, begin[:]); err != nil {
		return false, err
	}
	methods := make([]byte, begin[1])
	if _, err := io.ReadFull(r, methods); err != nil {
		return false, err
	}
	return begin[0] == socks5 && strings.IndexByte(string(methods), methodNone) >= 0, nil
}

// readSOCKS reads a request. The error is a *socksError or that of r.
func readSOCKS(r *bufio.Reader) (command byte, to socksTarget, err error) {
	var begin [3]byte
	if _, err := io.ReadFull(r, begin[:]); err != nil {
		return 0, to, err
	}
	if begin[0] != socks5 || begin[2] != 0 {
		return 0, to, &socksError{replyFailed, "malformed request"}
	}
	to, err = readTarget(r)
	return begin[1], to, err
}

// readTarget reads the type of an address, the address and a port.
func readTarget(r io.Reader) (socksTarget, error) {
	var kind [1]byte
	if _, err := io.ReadFull(r, kind[:]); err != nil {
		return socksTarget{}, err
	}
	var size int
	switch kind[0] {
	case addressIPv4:
		size = net.IPv4len
	case addressIPv6:
		size = net.IPv6len
	case addressName:
		var length [1]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return socksTarget{}, err
		}
		size = int(length[0])
	default:
		return socksTarget{}, &socksError{replyAddressType, "unsupported type of address"}
	}
	const portSize = 2
	p := make([]byte, size+portSize)
	if _, err := io.ReadFull(r, p); err != nil {
		return socksTarget{}, err
	}
	to := socksTarget{raw: string(p[:size]), port: binary.BigEndian.Uint16(p[size:])}
	if kind[0] == addressName {
		to.host = nameOrAddress(to.raw)
	} else if addr, ok := netip.AddrFromSlice(p[:size]); ok {
		to.host = network.AddrHost(addr)
	}
	return to, nil
}

// nameOrAddress returns the host of a name, or of an address in the place of one; the zero Host
// for a malformed one.
func nameOrAddress(raw string) network.Host {
	if strings.Contains(raw, ":") {
		raw = "[" + raw + "]"
	}
	h, err := network.ParseHost(raw)
	if err != nil {
		return network.Host{}
	}
	return h
}

// appendTarget appends the type of an address, the address and the port.
func appendTarget(p []byte, to netip.AddrPort) []byte {
	kind := byte(addressIPv4)
	if addr := to.Addr().Unmap(); addr.Is6() {
		kind = addressIPv6
	}
	p = append(append(p, kind), to.Addr().Unmap().AsSlice()...)
	return binary.BigEndian.AppendUint16(p, to.Port())
}

// serveSOCKS serves a connection that begins with the version of SOCKS5.
func (c *client) serveSOCKS() {
	c.within(headTime)
	fits, err := readGreeting(c.r)
	switch {
	case err != nil:
		return
	case !fits:
		_ = c.write([]byte{socks5, methodRefuse})
		return
	case c.write([]byte{socks5, methodNone}) != nil:
		return
	}
	command, to, err := readSOCKS(c.r)
	if bad := new(socksError); errors.As(err, &bad) {
		c.reply(bad.reply)
		return
	}
	if err != nil {
		return
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	switch command {
	case commandConnect:
		c.connectSOCKS(to)
	case commandAssociate:
		c.associate()
	default:
		c.reply(replyUnsupported)
	}
}

// reply sends the last reply to a request that is not served.
func (c *client) reply(code byte) {
	if c.replyWith(code, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)) == nil {
		c.linger()
	}
}

func (c *client) replyWith(code byte, bound netip.AddrPort) error {
	return c.write(appendTarget([]byte{socks5, code, 0}, bound))
}

// connectSOCKS serves the command CONNECT.
func (c *client) connectSOCKS(to socksTarget) {
	a := c.s.newAccess(network.SOCKS5TCP, "")
	a.raw, a.req.Host, a.req.Port = to.raw, to.host, to.port
	conn, err := a.reach("", c.ask)
	switch {
	case err != nil:
		c.reply(replyTo(err))
		return
	case conn == nil:
		c.reply(replyFor(a.decision))
		return
	}
	defer c.s.drop(conn)
	// The address of this machine on that connection is not the client's business.
	if c.replyWith(replyOK, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)) != nil {
		a.closed(Failed)
		return
	}
	a.closed(c.pass(a, conn))
}

// replyFor is the reply to a request that was not allowed.
func replyFor(d network.Decision) byte {
	switch {
	case d.Ruling == network.Reject:
		return replyFailed
	case d.Reason == network.DNSFailed:
		return replyHost
	}
	return replyNotAllowed
}

// replyTo is the reply when no connection could be made.
func replyTo(err error) byte {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return replyRefused
	case errors.Is(err, syscall.ENETUNREACH):
		return replyNetwork
	}
	return replyHost
}
