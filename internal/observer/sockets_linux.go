// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// An address is a copy of a socket address of a task.
type address struct {
	raw [128]byte // struct sockaddr_storage
	len int
}

// address copies one. The errors are those of the kernel.
func (r *request) address(at uint64, size uint64) (*address, syscall.Errno) {
	a := &address{len: int(int32(size))}
	if a.len < 0 || a.len > len(a.raw) {
		return nil, unix.EINVAL
	}
	if peek(r.n.pid, at, a.raw[:a.len]) != a.len {
		return nil, unix.EFAULT
	}
	return a, 0
}

func (a *address) family() int {
	if a.len < 2 {
		return unix.AF_UNSPEC
	}
	return int(binary.NativeEndian.Uint16(a.raw[:]))
}

// internet returns an internet address; false for all others, and for those that the
// kernel finds too short.
func (a *address) internet() (netip.AddrPort, bool) {
	port := binary.BigEndian.Uint16(a.raw[2:])
	switch {
	case a.family() == unix.AF_INET && a.len >= unix.SizeofSockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.raw[4:8])), port), true
	case a.family() == unix.AF_INET6 && a.len >= unix.SizeofSockaddrInet6-4:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(a.raw[8:24])).Unmap(), port), true
	}
	return netip.AddrPort{}, false
}

// unix returns the name of a unix socket: a path, or "@" and an abstract name. It is
// empty for an address without a name. A path that begins with "@" has "./" before it.
func (a *address) unix() string {
	const familySize = 2
	if a.len <= familySize {
		return ""
	}
	name := string(a.raw[familySize:a.len])
	if name[0] == 0 {
		return "@" + strings.TrimRight(name[1:], "\x00")
	}
	name, _, _ = strings.Cut(name, "\x00")
	if name[0] == '@' {
		return "./" + name
	}
	return name
}

// local reports whether an address means the command's own network: loopback, and the
// unspecified address, which leads there.
func local(ip netip.Addr) bool { return ip.IsLoopback() || ip.IsUnspecified() }

// dnsPort is where name servers listen.
const dnsPort = 53

// unreachable returns the error of a network with nothing but loopback for an address, and
// 0 for one that it has or that is invalid. A name server of this machine, which programs also
// ask where they find no configuration, is not there, and nothing of the command can listen at
// its port, which needs a capability.
func unreachable(to netip.AddrPort) syscall.Errno {
	ip := to.Addr()
	if local(ip) && to.Port() == dnsPort {
		return unix.ECONNREFUSED
	}
	if local(ip) || ip.Is6() && ip.IsLinkLocalUnicast() && ip.Zone() == "" { // EINVAL: it needs a scope
		return 0
	}
	return unix.ENETUNREACH
}

// protocolOf returns the type of a socket and the name of its protocol; false for what is
// no socket.
func protocolOf(sock int) (kind int, name string, ok bool) {
	kind, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_TYPE)
	if kind == unix.SOCK_DGRAM {
		return kind, "udp", err == nil
	}
	return kind, "tcp", err == nil
}

// protocol is protocolOf the descriptor in the first argument; false also where too many
// duplicates are held.
func (r *request) protocol() (kind int, name string, ok bool) {
	own, errno := r.duplicate(int32(r.n.args[0]))
	if errno != 0 {
		return 0, "", false
	}
	defer r.release(own)
	return protocolOf(own)
}

// denySocket is deny for an operation on an address.
func (r *request) denySocket(op sandbox.Op, addr, protocol string, errno syscall.Errno) syscall.Errno {
	return r.deny(sandbox.Denial{Access: sandbox.Access{Op: op, Addr: addr, Net: protocol}}, errno)
}

// inetSocket describes a refused internet socket, where there are none, by what it is for.
func (r *request) inetSocket(a *sandbox.Access) bool {
	if family := int32(r.n.args[0]); family != unix.AF_INET && family != unix.AF_INET6 {
		return false
	}
	const typeMask = 0xf // the rest are SOCK_CLOEXEC and SOCK_NONBLOCK
	*a = sandbox.Access{Op: sandbox.Connect, Net: "tcp"}
	if r.n.args[1]&typeMask == unix.SOCK_DGRAM {
		a.Net = "udp"
	}
	return true
}

// judgeSend is for datagrams with an address, and for connects that are not judged
// otherwise. It goes on where the network allows the address: the network is the wall.
func (r *request) judgeSend() syscall.Errno {
	if !r.cfg.PrivateNetwork {
		return 0
	}
	const messages = 16 // of one call that are looked at
	count := uint64(1)
	if r.kind == kindSendMany {
		count = min(r.n.args[2], messages)
	}
	for i := range count {
		a, errno := r.message(i)
		if errno != 0 {
			return 0
		}
		to, ok := a.internet()
		if !ok {
			continue
		}
		if errno = unreachable(to); errno == 0 {
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
func (r *request) message(i uint64) (*address, syscall.Errno) {
	switch r.kind {
	case kindConnect:
		return r.address(r.n.args[1], r.n.args[2])
	case kindSendTo:
		return r.address(r.n.args[4], r.n.args[5])
	}
	const stride = 64   // struct mmsghdr
	var header [56]byte // struct msghdr
	if peek(r.n.pid, r.n.args[1]+i*stride, header[:]) != len(header) {
		return nil, unix.EFAULT
	}
	name := uint64At(header[:], 0)
	if name == 0 {
		return &address{}, 0
	}
	return r.address(name, uint64At(header[:], 8)&0xffffffff)
}

// judgeBind goes on for what the walls allow: they decide about a path, and a private
// network has no addresses of other hosts.
func (r *request) judgeBind() syscall.Errno {
	a, errno := r.address(r.n.args[1], r.n.args[2])
	if errno != 0 {
		return 0
	}
	if a.family() == unix.AF_UNIX {
		return r.judgeBindUnix(a.unix())
	}
	at, ok := a.internet()
	if !ok || !r.cfg.PrivateNetwork {
		return 0
	}
	const reserved = 1024 // ports below need a capability that the command lacks
	switch {
	case !local(at.Addr()):
		if !hasAddress(at.Addr()) {
			return 0 // the same outside of the sandbox
		}
		errno = unix.EADDRNOTAVAIL
	case at.Port() != 0 && at.Port() < reserved && unix.Geteuid() == 0:
		errno = unix.EACCES
	default:
		return 0
	}
	_, name, ok := r.protocol()
	if !ok {
		return 0
	}
	return r.denySocket(sandbox.Bind, at.String(), name, errno)
}

// hasAddress reports whether this machine has an address, by trying to bind it.
func hasAddress(ip netip.Addr) bool {
	family := unix.AF_INET6
	var to unix.Sockaddr = &unix.SockaddrInet6{Addr: ip.As16()}
	if ip.Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Addr: ip.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Bind(fd, to) == nil
}

func (r *request) judgeBindUnix(name string) syscall.Errno {
	switch {
	case name == "" || r.cfg.NoSockets:
		return 0
	case name[0] == '@':
		if r.cfg.PrivateNetwork || r.cfg.UnixOpen {
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
