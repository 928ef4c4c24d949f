// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// An address is a copy of a socket address of a task.
type address struct {
	raw [128]byte // struct sockaddr_storage
	len int
}

// address copies one. The errors are those of the kernel.
func (s *Supervisor) address(tid uint32, at uint64, size uint64) (*address, syscall.Errno) {
	a := &address{len: int(int32(size))}
	if a.len < 0 || a.len > len(a.raw) {
		return nil, unix.EINVAL
	}
	if peek(tid, at, a.raw[:a.len]) != a.len {
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

// peer returns an internet address; false for all others, and for those that the
// kernel finds too short.
func (a *address) peer() (netip.AddrPort, bool) {
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
// empty for an address without a name.
func (a *address) unix() string {
	const at = 2 // behind the family
	if a.len <= at {
		return ""
	}
	name := string(a.raw[at:a.len])
	if name[0] == 0 {
		return "@" + strings.TrimRight(name[1:], "\x00")
	}
	name, _, _ = strings.Cut(name, "\x00")
	return name
}

// local reports whether an address means the command's own network: loopback, and
// the unspecified address, which leads there.
func local(ip netip.Addr) bool { return ip.IsLoopback() || ip.IsUnspecified() }

// unreachable is what a network with nothing but loopback says of an address, and 0
// of one that it has or that is none.
func unreachable(ip netip.Addr) syscall.Errno {
	if local(ip) || ip.Is6() && ip.IsLinkLocalUnicast() && ip.Zone() == "" { // EINVAL: it needs a scope
		return 0
	}
	return unix.ENETUNREACH
}

// pidfdThread names a thread instead of a process (PIDFD_THREAD of linux/pidfd.h).
const pidfdThread = unix.O_EXCL

// take duplicates a descriptor of a task.
func (s *Supervisor) take(tid uint32, fd int32) (int, syscall.Errno) {
	pidfd, err := unix.PidfdOpen(int(tid), pidfdThread)
	if err != nil { // before Linux 6.9 only the first thread can be named
		pid, perr := strconv.Atoi(field(s.status(tid), "Tgid:"))
		if perr != nil {
			return -1, unix.ESRCH
		}
		if pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
			return -1, unix.ESRCH
		}
	}
	defer unix.Close(pidfd)
	own, err := unix.PidfdGetfd(pidfd, int(fd), 0)
	if err != nil {
		return -1, unix.EBADF
	}
	return own, 0
}

// protocol names what a socket speaks; false when fd is none.
func (s *Supervisor) protocol(tid uint32, fd uint64) (kind int, name string, ok bool) {
	own, errno := s.take(tid, int32(fd))
	if errno != 0 {
		return 0, "", false
	}
	defer unix.Close(own)
	kind, err := unix.GetsockoptInt(own, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return 0, "", false
	}
	if kind == unix.SOCK_DGRAM {
		return kind, "udp", true
	}
	return kind, "tcp", true
}

func (s *Supervisor) judgeSocket(l *listener, n *notification) syscall.Errno {
	family := int32(n.args[0])
	if family == unix.AF_INET || family == unix.AF_INET6 {
		kind := "tcp"
		if n.args[1]&0xf == unix.SOCK_DGRAM {
			kind = "udp"
		}
		return s.deny(l, n, sandbox.Access{Op: sandbox.Connect, Net: kind}, unix.EPERM)
	}
	return unix.EPERM
}

// judgeSend is for datagrams with an address. They go on when nothing is said
// against it: the network is the wall.
func (s *Supervisor) judgeSend(l *listener, n *notification, k kind) syscall.Errno {
	if !s.cfg.PrivateNetwork {
		return 0
	}
	const (
		messages = 16 // of one call that are looked at
		header   = 56 // struct msghdr
		stride   = 64 // struct mmsghdr
	)
	count, at := uint64(1), n.args[1]
	if k == kindSendMany {
		count = min(n.args[2], messages)
	}
	for i := range count {
		var a *address
		var errno syscall.Errno
		if k == kindSendTo {
			a, errno = s.address(n.pid, n.args[4], n.args[5])
		} else {
			var msg [header]byte
			if peek(n.pid, at+i*stride, msg[:]) != header {
				return 0
			}
			name := uint64At(msg[:], 0)
			if name == 0 {
				continue
			}
			a, errno = s.address(n.pid, name, uint64At(msg[:], 8)&0xffffffff)
		}
		if errno != 0 {
			return 0
		}
		to, ok := a.peer()
		if !ok {
			continue
		}
		if errno := unreachable(to.Addr()); errno != 0 {
			kind, name, isSocket := s.protocol(n.pid, n.args[0])
			if !isSocket || kind != unix.SOCK_DGRAM {
				return 0 // ENOTSOCK; a stream has no use for an address
			}
			errno = s.deny(l, n, sandbox.Access{Op: sandbox.Connect, Addr: to.String(), Net: name}, errno)
			if i > 0 {
				return 0 // those before it are sent; the kernel stops here
			}
			return errno
		}
	}
	return 0
}

// judgeBind goes on for what the walls allow: a name in a folder is made or refused
// by them, and a private network has no addresses of others.
func (s *Supervisor) judgeBind(l *listener, n *notification) syscall.Errno {
	a, errno := s.address(n.pid, n.args[1], n.args[2])
	if errno != 0 {
		return 0
	}
	if a.family() == unix.AF_UNIX {
		return s.judgeBindUnix(l, n, a)
	}
	at, ok := a.peer()
	if !ok || !s.cfg.PrivateNetwork {
		return 0
	}
	errno = 0
	const reserved = 1024 // the ports below are for those with a capability that the command lacks
	switch {
	case !local(at.Addr()):
		if !ours(at.Addr()) {
			return 0 // it could not be had outside either
		}
		errno = unix.EADDRNOTAVAIL
	case at.Port() != 0 && at.Port() < reserved && unix.Geteuid() == 0:
		errno = unix.EACCES
	}
	if errno == 0 {
		return 0
	}
	_, name, isSocket := s.protocol(n.pid, n.args[0])
	if !isSocket {
		return 0
	}
	return s.deny(l, n, sandbox.Access{Op: sandbox.Bind, Addr: at.String(), Net: name}, errno)
}

// ours reports whether this machine has an address, by trying.
func ours(ip netip.Addr) bool {
	family := unix.AF_INET
	if ip.Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if ip.Is4() {
		return unix.Bind(fd, &unix.SockaddrInet4{Addr: ip.As4()}) == nil
	}
	return unix.Bind(fd, &unix.SockaddrInet6{Addr: ip.As16()}) == nil
}

func (s *Supervisor) judgeBindUnix(l *listener, n *notification, a *address) syscall.Errno {
	name := a.unix()
	switch {
	case name == "" || s.cfg.NoSockets:
		return 0
	case name[0] == '@':
		if s.cfg.PrivateNetwork || s.cfg.UnixOpen {
			return 0 // abstract names belong to the network, which is the command's own
		}
		return s.deny(l, n, sandbox.Access{Op: sandbox.Bind, Addr: name, Net: "unix"}, unix.EPERM)
	}
	p, m := s.find(n.pid, atCwd, []byte(name), false)
	if m != nil {
		return 0
	}
	defer p.close()
	if p.there {
		return 0 // EADDRINUSE
	}
	errno := s.folderWall(&p)
	if errno == 0 {
		_, errno = s.ruled(sandbox.Write, &p, true)
	}
	if errno == 0 {
		return 0
	}
	return s.deny(l, n, sandbox.Access{Op: sandbox.Bind, Addr: s.pathOf(&p), Net: "unix"}, errno)
}

// connect asks the kernel to connect a socket to a copied address.
func connect(sock int, a *address) syscall.Errno {
	for {
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(sock), uintptr(unsafe.Pointer(&a.raw)), uintptr(a.len))
		if errno != unix.EINTR {
			return errno
		}
	}
}
