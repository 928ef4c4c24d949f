// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// protocol is sockets.Protocol the descriptor in the first argument; false also where too many
// duplicates are held.
func (r *request) protocol() (kind int, name string, ok bool) {
	own, errno := r.duplicate(int32(r.n.Args[0]))
	if errno != 0 {
		return 0, "", false
	}
	defer r.release(own)
	return tasks.Protocol(own)
}

// denySocket is deny for an operation on an address.
func (r *request) denySocket(op sandbox.Op, addr, protocol string, errno syscall.Errno) syscall.Errno {
	return r.deny(sandbox.Denial{Access: sandbox.Access{Op: op, Addr: addr, Net: protocol}}, errno)
}

// inetSocket describes a refused internet socket, where there are none, by what it is for.
func (r *request) inetSocket(a *sandbox.Access) bool {
	if family := int32(r.n.Args[0]); family != unix.AF_INET && family != unix.AF_INET6 {
		return false
	}
	const typeMask = 0xf // the rest are SOCK_CLOEXEC and SOCK_NONBLOCK
	*a = sandbox.Access{Op: sandbox.Connect, Net: "tcp"}
	if r.n.Args[1]&typeMask == unix.SOCK_DGRAM {
		a.Net = "udp"
	}
	return true
}

// judgeNames is for datagrams with an address, and for connects, that are not made here. It
// goes on where the network allows the address: the network is the wall.
func (r *request) judgeNames() syscall.Errno {
	if !r.cfg.PrivateNetwork {
		return 0
	}
	const messages = 16 // of one call that are looked at
	count := uint64(1)
	if r.kind == kindSendMany {
		count = min(r.n.Args[2], messages)
	}
	for i := range count {
		a, errno := r.message(i)
		if errno != 0 {
			return 0
		}
		to, ok := a.Internet()
		if !ok {
			continue
		}
		if errno = r.unreachable(to); errno == 0 {
			continue
		}
		kind, name, ok := r.protocol()
		if !ok || r.kind != kindConnect && kind != unix.SOCK_DGRAM {
			return 0 // ENOTSOCK; a stream ignores the address of a message
		}
		errno = r.denySocket(sandbox.Connect, to.String(), name, errno)
		if i > 0 {
			return 0 // those before it are sent; the kernel stops here
		}
		return errno
	}
	return 0
}

// message returns the address of one message of a call; an empty one where it has none.
func (r *request) message(i uint64) (*tasks.Address, syscall.Errno) {
	switch r.kind {
	case kindConnect:
		return tasks.ReadAddress(r.n.PID, r.n.Args[1], r.n.Args[2])
	case kindSendTo:
		return tasks.ReadAddress(r.n.PID, r.n.Args[4], r.n.Args[5])
	}
	m, errno := tasks.ReadMessage(r.n.PID, r.n.Args[1]+i*tasks.MessageSize)
	if errno != 0 {
		return nil, errno
	}
	return m.To, 0
}

// judgeBind goes on for what the walls allow: they decide about a path, and a private
// network has no addresses of other hosts.
func (r *request) judgeBind() syscall.Errno {
	a, errno := tasks.ReadAddress(r.n.PID, r.n.Args[1], r.n.Args[2])
	if errno != 0 {
		return 0
	}
	if a.Family() == unix.AF_UNIX {
		return r.judgeBindUnix(a.Unix())
	}
	at, ok := a.Internet()
	if !ok || !r.cfg.PrivateNetwork {
		return 0
	}
	if tasks.Local(at.Addr()) || !tasks.HasAddress(at.Addr()) {
		return 0 // allowed, or the same outside of the sandbox
	}
	_, name, ok := r.protocol()
	if !ok {
		return 0
	}
	return r.denySocket(sandbox.Bind, at.String(), name, unix.EADDRNOTAVAIL)
}

func (r *request) judgeBindUnix(name string) syscall.Errno {
	switch {
	case r.cfg.NoSockets:
		return 0
	case name == "": // the kernel chooses an abstract one
		r.bindsName()
		return 0
	case name[0] == '@':
		if r.cfg.PrivateNetwork || r.cfg.UnixOpen {
			r.bindsName()
			return 0 // abstract names belong to the network, which is the command's own
		}
		return r.denySocket(sandbox.Bind, name, "unix", unix.EPERM)
	}
	p, lerr := r.find(atCwd, []byte(name), false)
	if lerr != nil {
		return 0
	}
	defer p.close()
	if p.exists {
		return 0 // EADDRINUSE
	}
	errno := r.directoryWall(&p)
	if errno == 0 {
		r.special = true
		_, errno = r.ruled(sandbox.Write, &p, true)
	}
	if errno == 0 && p.named() {
		r.binds(&p)
	}
	return r.denySocket(sandbox.Bind, r.pathOf(&p), "unix", errno)
}
