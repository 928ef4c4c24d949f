// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// originalDst is SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST of netfilter.
const originalDst = 80

// destination returns the address that a connection was going to, before the kernel redirected it or
// without that.
func (s *Sockets) destination(conn net.Conn) (at netip.AddrPort, err error) {
	tcp, ok := conn.(*net.TCPConn)
	local, isTCP := conn.LocalAddr().(*net.TCPAddr)
	if !ok || !isTCP {
		return at, errors.New("it is no connection of TCP")
	}
	if s.Routed {
		return local.AddrPort(), nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return at, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		if local.IP.To4() == nil {
			at, err = destination6(int(fd))
		} else {
			at, err = destination4(int(fd))
		}
	})
	return at, errors.Join(err, controlErr)
}

// destination4 reads struct sockaddr_in, which has the size of the structure that is asked for.
func destination4(fd int) (netip.AddrPort, error) {
	m, err := unix.GetsockoptIPv6Mreq(fd, unix.IPPROTO_IP, originalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	b := m.Multiaddr
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), uint16(b[2])<<8|uint16(b[3])), nil
}

// destination6 reads struct sockaddr_in6, with which the structure begins that is asked for.
func destination6(fd int) (netip.AddrPort, error) {
	info, err := unix.GetsockoptIPv6MTUInfo(fd, unix.IPPROTO_IPV6, originalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port := info.Addr.Port
	return netip.AddrPortFrom(netip.AddrFrom16(info.Addr.Addr), port>>8|port<<8), nil
}
