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
	at, err := netip.ParseAddrPort(s.Path)
	switch {
	case l.fds.listen == 0:
		l.fail("listen needs Files.Listen")
	case l.fork >= 0:
		l.fail("listen behind start-command: the command would keep the socket")
	case err != nil || !at.Addr().Is4() || !at.Addr().IsLoopback() || at.Port() == 0:
		l.fail("listen takes an IPv4 address of the loopback interface and a port, not %q", s.Path)
	}
	if l.err != nil {
		return
	}
	port := at.Port()>>8 | at.Port()<<8 // in the order of the network
	raw := &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: at.Addr().As4()}
	socket, msg := l.message()
	l.call("socket", unix.SYS_SOCKET, num(unix.AF_INET), num(unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK), num(0)).store(socket)
	l.call("bind", unix.SYS_BIND, held(socket), pin(l, raw), num(unix.SizeofSockaddrInet4))
	l.call("listen", unix.SYS_LISTEN, held(socket), num(backlog))
	l.call("sendmsg", unix.SYS_SENDMSG, num(l.fds.listen), msg, num(unix.MSG_NOSIGNAL)).expect(1)
	l.close(socket)
}
