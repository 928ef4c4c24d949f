// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An Address is a copy of a socket address of a task.
type Address struct {
	Raw [128]byte // struct sockaddr_storage, of which Len bytes count
	Len int
}

// ReadAddress copies an address of a task. The errors are those of the kernel.
func ReadAddress(tid uint32, at, size uint64) (*Address, syscall.Errno) {
	a := &Address{Len: int(int32(size))}
	if a.Len < 0 || a.Len > len(a.Raw) {
		return nil, unix.EINVAL
	}
	if read(tid, at, a.Raw[:a.Len]) != a.Len {
		return nil, unix.EFAULT
	}
	return a, 0
}

// Family returns the family, AF_UNSPEC for an address without one.
func (a *Address) Family() int {
	if a.Len < 2 {
		return unix.AF_UNSPEC
	}
	return int(binary.NativeEndian.Uint16(a.Raw[:]))
}

// Internet returns an internet address; false for all others, and for those that the
// kernel finds too short.
func (a *Address) Internet() (netip.AddrPort, bool) {
	port := binary.BigEndian.Uint16(a.Raw[2:])
	switch {
	case a.Family() == unix.AF_INET && a.Len >= unix.SizeofSockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.Raw[4:8])), port), true
	case a.Family() == unix.AF_INET6 && a.Len >= unix.SizeofSockaddrInet6-4:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(a.Raw[8:24])).Unmap(), port), true
	}
	return netip.AddrPort{}, false
}

// Unix returns the name of a unix socket: a path, or "@" and an abstract name. It is
// empty for an address without a name. A path that begins with "@" has "./" before it.
func (a *Address) Unix() string {
	const familySize = 2
	if a.Len <= familySize {
		return ""
	}
	name := string(a.Raw[familySize:a.Len])
	if name[0] == 0 {
		return "@" + strings.TrimRight(name[1:], "\x00")
	}
	name, _, _ = strings.Cut(name, "\x00")
	if name[0] == '@' {
		return "./" + name
	}
	return name
}

// Abstract returns an abstract name as the kernel compares it, with every byte; false for another address.
func (a *Address) Abstract() (string, bool) {
	const familySize = 2
	if a.Family() != unix.AF_UNIX || a.Len <= familySize || a.Raw[familySize] != 0 {
		return "", false
	}
	return string(a.Raw[familySize+1 : a.Len]), true
}

// FileAddress is the address of a unix socket whose file is open.
func FileAddress(fd int) *Address {
	const familySize = 2
	var a Address
	a.Len = familySize + copy(a.Raw[familySize:], "/proc/self/fd/"+strconv.Itoa(fd)+"\x00")
	binary.NativeEndian.PutUint16(a.Raw[:], unix.AF_UNIX)
	return &a
}

// Connect asks the kernel to connect a socket to a copied address, again where a signal
// came between.
func Connect(sock int, a *Address) syscall.Errno {
	for {
		if errno := TryConnect(sock, a); errno != unix.EINTR {
			return errno
		}
	}
}

// TryConnect is Connect, which returns EINTR where a signal came between.
func TryConnect(sock int, a *Address) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(sock), uintptr(unsafe.Pointer(&a.Raw)),
		uintptr(a.Len))
	return errno
}

// Probe connects a datagram socket to the file of a socket, which a stream socket there does
// not notice. The result is EPROTOTYPE where there is one, 0 where there is a datagram
// socket, ECONNREFUSED where there is none.
func Probe(fd int) syscall.Errno {
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(sock)
	return Connect(sock, FileAddress(fd))
}

// Local reports whether an address means the command's own network: loopback, and the
// unspecified address, which leads there.
func Local(ip netip.Addr) bool { return ip.IsLoopback() || ip.IsUnspecified() }

// dnsPort is where name servers listen.
const dnsPort = 53

// Unreachable returns the error of a network with nothing but loopback for an address, and
// 0 for one that it has or that is invalid. A name server of this machine, which programs also
// ask where they find no configuration, is not there, and nothing of the command can listen at
// its port, which needs a capability.
func Unreachable(to netip.AddrPort) syscall.Errno {
	ip := to.Addr()
	if Local(ip) && to.Port() == dnsPort {
		return unix.ECONNREFUSED
	}
	if Local(ip) || ip.Is6() && ip.IsLinkLocalUnicast() && ip.Zone() == "" { // EINVAL: it needs a scope
		return 0
	}
	return unix.ENETUNREACH
}

// HasAddress reports whether this machine has an address, by trying to bind it.
func HasAddress(ip netip.Addr) bool {
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
