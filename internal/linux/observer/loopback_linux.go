// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A private network has a loopback interface of its own. People who start a program there look for it on
// this machine's, and programs that want a service of this machine look for it on theirs. Nothing of
// this decides about a call.

// maxPorts is how many ports at which tasks listen are told, and for how many refused connections this
// machine is looked at: its list of sockets can be long.
const maxPorts = 16

// tellPort tells the port at which a socket is about to listen.
func (r *request) tellPort(sock int) {
	if r.cfg.OnListen == nil || !r.cfg.PrivateNetwork || len(r.ports) >= maxPorts {
		return
	}
	var port int
	addr, err := unix.Getsockname(sock)
	if err != nil {
		return
	}
	switch a := addr.(type) {
	case *unix.SockaddrInet4:
		port = a.Port
	case *unix.SockaddrInet6:
		port = a.Port
	}
	if port == 0 || r.ports[uint16(port)] {
		return // of another kind, or the kernel is about to choose one
	}
	if r.ports == nil {
		r.ports = make(map[uint16]bool)
	}
	r.ports[uint16(port)] = true
	r.cfg.OnListen(uint16(port))
}

// noteService notes a connection to the command's own loopback interface at which nothing listens, where this
// machine has a service there. Only the list of its sockets is looked at.
func (c *connecting) noteService(errno syscall.Errno) {
	to, ok := c.addr.Internet()
	if !ok || !c.cfg.PrivateNetwork || c.domain != unix.AF_INET && c.domain != unix.AF_INET6 ||
		!to.Addr().IsLoopback() && !to.Addr().IsUnspecified() || !c.isRefused(errno) ||
		c.refused.Add(1) > maxPorts || !tasks.Listening(to.Port()) {
		return
	}
	port := strconv.Itoa(int(to.Port()))
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), to.Port())
	if to.Addr().Is6() && to.Addr().IsLoopback() {
		at = netip.AddrPortFrom(netip.IPv6Loopback(), to.Port())
	}
	_ = c.deny(sandbox.Denial{
		Access: sandbox.Access{Op: sandbox.Connect, Addr: at.String(), Net: "tcp"},
		Rule:   grants.ServiceRule + port, NoGrant: true,
		Grant: sandbox.Grant{Name: grants.HostLoopbackPrefix + port}.String(),
	}, unix.ECONNREFUSED)
}

// isRefused reports whether a connection was refused, also one that its task does not wait for. The error of
// such a socket is the task's to take, so its state is looked at.
func (c *connecting) isRefused(errno syscall.Errno) bool {
	const closed = 7 // TCP_CLOSE
	if errno != unix.EINPROGRESS {
		return errno == unix.ECONNREFUSED
	}
	info, err := unix.GetsockoptTCPInfo(c.sock, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State == closed
}
