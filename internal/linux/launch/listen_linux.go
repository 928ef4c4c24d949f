// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// backlog is how many connections may wait to be accepted. The kernel takes no more than its
// setting net.core.somaxconn, which is 4096 in a new network namespace.
const backlog = 4096

// lowerListen makes a listening socket and sends it out. A socket stays in the network namespace
// in which it was made, so the process that gets it serves that namespace and no other.
func (l *lowering) lowerListen(s *Step) {
	if s.Path == "" {
		l.lowerSocket(s)
		return
	}
	at, err := netip.ParseAddrPort(s.Path)
	switch {
	case l.fds.listen == 0:
		l.fail("listen needs Files.Listen")
	case l.inCommand:
		l.fail("listen behind start-command: the command would keep the socket")
	case err != nil || at.Addr().Zone() != "" || at.Addr().Is4In6() || at.Port() == 0 ||
		!l.mayListen(at.Addr(), s.Value):
		l.fail("listen takes an address of the loopback interface and a port, not %q", s.Path)
	case s.Value != 0 && s.Value != unix.SOCK_DGRAM:
		l.fail("listen takes no sockets of type %d", s.Value)
	}
	if l.err != nil {
		return
	}
	kind := unix.SOCK_STREAM
	if s.Value != 0 {
		kind = unix.SOCK_DGRAM
	}
	family, address, size := l.socketAddress(at)
	socket, msg := l.message()
	l.call("socket", unix.SYS_SOCKET, num(family), num(kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK),
		num(0)).store(socket)
	l.call("bind", unix.SYS_BIND, held(socket), address, num(size))
	if kind == unix.SOCK_STREAM {
		l.call("listen", unix.SYS_LISTEN, held(socket), num(backlog))
	}
	l.call("sendmsg", unix.SYS_SENDMSG, num(l.fds.listen), msg, num(unix.MSG_NOSIGNAL)).expect(1)
	l.close(socket)
}

// mayListen reports whether a socket of a kind may be bound to an address. Every address at once is for
// connections in a network of its own: elsewhere other machines could connect.
func (l *lowering) mayListen(at netip.Addr, kind uint64) bool {
	if at.IsUnspecified() {
		return l.ownNetwork && kind != unix.SOCK_DGRAM
	}
	return at.IsLoopback() || kind == unix.SOCK_DGRAM
}

// lowerSocket makes a TCP socket of a family and sends it out. Its receiver connects inside with it.
func (l *lowering) lowerSocket(s *Step) {
	switch {
	case l.fds.listen == 0:
		l.fail("listen needs Files.Listen")
	case l.inCommand:
		l.fail("listen behind start-command: the command would keep the socket")
	case s.Value != unix.AF_INET && s.Value != unix.AF_INET6:
		l.fail("listen takes an address of the loopback interface and a port, or a family, not %d", s.Value)
	}
	if l.err != nil {
		return
	}
	socket, msg := l.message()
	l.call("socket", unix.SYS_SOCKET, num(s.Value),
		num(unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK), num(0)).store(socket)
	l.call("sendmsg", unix.SYS_SENDMSG, num(l.fds.listen), msg, num(unix.MSG_NOSIGNAL)).expect(1)
	l.close(socket)
}

// socketAddress returns an address as bind(2) reads it.
func (l *lowering) socketAddress(at netip.AddrPort) (family int, raw arg, size int) {
	port := at.Port()>>8 | at.Port()<<8 // in the order of the network
	if at.Addr().Is6() {
		return unix.AF_INET6, pin(l, &unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port,
			Addr: at.Addr().As16()}), unix.SizeofSockaddrInet6
	}
	return unix.AF_INET, pin(l, &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port,
		Addr: at.Addr().As4()}), unix.SizeofSockaddrInet4
}
