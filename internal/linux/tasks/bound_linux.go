// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HandedIn reports whether a socket belongs to the network of this process and not to one
// of the command's: it was handed in, and leads out. So may one that cannot be asked.
func HandedIn(sock int) bool {
	own, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(own)
	ours, err := unix.GetsockoptUint64(own, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return true
	}
	theirs, err := unix.GetsockoptUint64(sock, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return err != nil || ours == theirs
}

// Protocol returns the type of a socket and the name of its protocol; false for what is
// no socket.
func Protocol(sock int) (kind int, name string, ok bool) {
	kind, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_TYPE)
	if kind == unix.SOCK_DGRAM {
		return kind, "udp", err == nil
	}
	return kind, "tcp", err == nil
}

// BoundFile opens the file that a unix socket is bound to. The error is ENOENT where there
// is none, and EPERM where the user does not own the socket's network.
func BoundFile(sock int) (int, syscall.Errno) {
	const siocUnixFile = 0x89e0 // SIOCUNIXFILE of linux/un.h
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(sock), siocUnixFile, 0)
	return int(fd), errno
}

// BoundTo returns the name that a unix socket was bound to, as [Address.Unix] does; empty
// where there is none.
func BoundTo(sock int) string { return boundTo(sock).Unix() }

// AbstractName returns the abstract name that a unix socket has, as [Address.Abstract] does.
func AbstractName(sock int) (string, bool) { return boundTo(sock).Abstract() }

func boundTo(sock int) *Address {
	var a Address
	size := uint32(len(a.Raw))
	if _, _, errno := unix.Syscall(unix.SYS_GETSOCKNAME, uintptr(sock), uintptr(unsafe.Pointer(&a.Raw)),
		uintptr(unsafe.Pointer(&size))); errno == 0 {
		a.Len = min(int(size), len(a.Raw))
	}
	return &a
}

// Bound asks the kernel for the file that a unix socket of this network is bound to: the
// device, and the low half of the number.
func Bound(sock int) (dev string, ino uint32, ok bool) {
	const (
		showVFS   = 2  // UDIAG_SHOW_VFS
		attrVFS   = 1  // UNIX_DIAG_VFS
		minorBits = 20 // of the kernel's own device numbers
	)
	link, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return "", 0, false
	}
	defer unix.Close(link)
	b := diagnose(link, sock, showVFS, attrVFS)
	if len(b) < 8 {
		return "", 0, false
	}
	at := binary.NativeEndian.Uint32(b[4:])
	return fmt.Sprintf("%d:%d", at>>minorBits, at&(1<<minorBits-1)), binary.NativeEndian.Uint32(b), true
}

// diagnose asks the kernel about a unix socket, and returns one attribute of the answer; nil where there is
// none. The link is a netlink socket of the same network.
func diagnose(link, sock int, show uint32, attr uint16) []byte {
	var st unix.Stat_t
	cookie, err := unix.GetsockoptUint64(sock, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil || unix.Fstat(sock, &st) != nil {
		return nil
	}
	if unix.Sendto(link, diagRequest(uint32(st.Ino), cookie, show), 0,
		&unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return nil
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(link, answer, unix.MSG_DONTWAIT) // it was made while the request was sent
	if err != nil {
		return nil
	}
	return diagAnswer(answer[:n], attr)
}

// diagRequest is a struct nlmsghdr with a struct unix_diag_req, of linux/netlink.h and
// linux/unix_diag.h.
func diagRequest(ino uint32, cookie uint64, show uint32) []byte {
	const size = unix.SizeofNlMsghdr + 24
	e := binary.NativeEndian
	b := e.AppendUint32(make([]byte, 0, size), size)
	b = e.AppendUint16(b, unix.SOCK_DIAG_BY_FAMILY)
	b = e.AppendUint16(b, unix.NLM_F_REQUEST)
	b = e.AppendUint64(b, 0) // the number of the message, and the sender
	b = append(b, unix.AF_UNIX, 0, 0, 0)
	b = e.AppendUint32(b, ^uint32(0)) // in every state
	b = e.AppendUint32(b, ino)
	b = e.AppendUint32(b, show)
	b = e.AppendUint32(b, uint32(cookie))
	return e.AppendUint32(b, uint32(cookie>>32))
}

// diagAnswer reads a struct nlmsghdr with a struct unix_diag_msg and attributes, and returns one of these.
func diagAnswer(b []byte, attr uint16) []byte {
	const head = unix.SizeofNlMsghdr + 16
	e := binary.NativeEndian
	if len(b) < head || e.Uint16(b[4:]) != unix.SOCK_DIAG_BY_FAMILY {
		return nil
	}
	for b = b[head:]; len(b) >= unix.SizeofNlAttr; {
		size := int(e.Uint16(b))
		if size < unix.SizeofNlAttr || size > len(b) {
			break
		}
		if e.Uint16(b[2:]) == attr {
			return b[unix.SizeofNlAttr:size]
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return nil
}

// PeerOf asks the kernel, by a socket of the same network, for the number of the socket that a unix socket is
// connected to.
func PeerOf(link, sock int) (ino uint32, ok bool) {
	const (
		showPeer = 4 // UDIAG_SHOW_PEER
		attrPeer = 2 // UNIX_DIAG_PEER
	)
	b := diagnose(link, sock, showPeer, attrPeer)
	if len(b) < 4 {
		return 0, false
	}
	ino = binary.NativeEndian.Uint32(b)
	return ino, ino != 0
}
