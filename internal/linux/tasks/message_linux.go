// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"encoding/binary"
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// MessageSize is how far apart the messages of sendmmsg(2) lie (struct mmsghdr), and SentAt
// where in each the length is that was sent.
const (
	MessageSize = 64
	SentAt      = 56
)

// MaxMessages is how many messages one sendmmsg(2) sends (UIO_MAXIOV).
const MaxMessages = 1024

const (
	maxPieces  = 1024    // UIO_MAXIOV of linux/uio.h
	maxControl = 4 << 10 // more than all that is passed on can take
)

// A Message is what a task sends: copies, except of the data, which is copied when it is sent.
type Message struct {
	// To is the address that the task has named; empty for none.
	To *Address

	control []byte
	pieces  []unix.RemoteIovec
	size    int
}

// Plain reports whether a message is short and has neither an address nor control data.
func (m *Message) Plain() bool { return m.To.Len == 0 && len(m.control) == 0 && m.size <= part }

// ReadBuffer returns the message of sendto(2).
func ReadBuffer(tid uint32, at, size, to, toLen uint64) (*Message, syscall.Errno) {
	m := &Message{To: &Address{}, size: int(min(size, math.MaxInt32))}
	m.pieces = []unix.RemoteIovec{{Base: uintptr(at), Len: m.size}}
	var errno syscall.Errno
	if to != 0 {
		m.To, errno = ReadAddress(tid, to, toLen)
	}
	return m, errno
}

// ReadMessage copies a struct msghdr of a task. The errors are those of the kernel.
func ReadMessage(tid uint32, at uint64) (*Message, syscall.Errno) {
	var b [56]byte
	if read(tid, at, b[:]) != len(b) {
		return nil, unix.EFAULT
	}
	field := func(i int) uint64 { return binary.NativeEndian.Uint64(b[i:]) }
	m := &Message{To: &Address{}}
	if name, size := field(0), int32(field(8)); name != 0 && size != 0 {
		if size < 0 {
			return nil, unix.EINVAL
		}
		var errno syscall.Errno
		if m.To, errno = ReadAddress(tid, name, uint64(min(int(size), len(m.To.Raw)))); errno != 0 {
			return nil, errno
		}
	}
	if errno := m.readPieces(tid, field(16), field(24)); errno != 0 {
		return nil, errno
	}
	if size := field(40); field(32) != 0 && size > 0 {
		if size > maxControl {
			return nil, unix.ENOBUFS
		}
		m.control = make([]byte, size)
		if read(tid, field(32), m.control) != len(m.control) {
			return nil, unix.EFAULT
		}
	}
	return m, 0
}

// readPieces copies the list of where the data lies.
func (m *Message) readPieces(tid uint32, at, count uint64) syscall.Errno {
	const entry = 16 // struct iovec
	if count > maxPieces {
		return unix.EMSGSIZE
	}
	b := make([]byte, count*entry)
	if read(tid, at, b) != len(b) {
		return unix.EFAULT
	}
	for ; len(b) > 0; b = b[entry:] {
		base, size := binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])
		if size > math.MaxInt64 {
			return unix.EINVAL
		}
		size = min(size, uint64(math.MaxInt32-m.size)) // as the kernel bounds a call
		m.pieces = append(m.pieces, unix.RemoteIovec{Base: uintptr(base), Len: int(size)})
		m.size += int(size)
	}
	return 0
}

// Control data that is passed on.
type control struct {
	plain       []byte      // as it is
	descriptors []int32     // of the task
	credentials *unix.Ucred // as whom the task names itself; nil is for no name
}

// maxPassed is SCM_MAX_FD of net/scm.h.
const maxPassed = 253

// parse reads the control data for a socket of a family. What is not known there is refused.
func (m *Message) parse(domain int) (c control, errno syscall.Errno) {
	const head = unix.SizeofCmsghdr
	for b := m.control; len(b) >= head; {
		size := binary.NativeEndian.Uint64(b)
		level, kind := int32(binary.NativeEndian.Uint32(b[8:])), int32(binary.NativeEndian.Uint32(b[12:]))
		if size < head || size > uint64(len(b)) {
			return control{}, unix.EINVAL
		}
		data := b[head:size]
		switch {
		case (domain == unix.AF_INET || domain == unix.AF_INET6) && plain(level, kind):
			c.plain = append(c.plain, b[:size]...)
			c.plain = append(c.plain, make([]byte, align(len(c.plain))-len(c.plain))...)
		case domain != unix.AF_UNIX || level != unix.SOL_SOCKET:
			return control{}, unix.EINVAL
		case kind == unix.SCM_RIGHTS:
			for ; len(data) >= 4; data = data[4:] {
				c.descriptors = append(c.descriptors, int32(binary.NativeEndian.Uint32(data)))
			}
		case kind == unix.SCM_CREDENTIALS && len(data) == unix.SizeofUcred:
			e := binary.NativeEndian
			c.credentials = &unix.Ucred{Pid: int32(e.Uint32(data)), Uid: e.Uint32(data[4:]),
				Gid: e.Uint32(data[8:])}
		default:
			return control{}, unix.EINVAL
		}
		b = b[min(align(int(size)), len(b)):]
	}
	if len(c.descriptors) > maxPassed {
		return control{}, unix.EINVAL
	}
	return c, 0
}

// plain reports whether control data of internet sockets holds nothing but numbers about one
// packet.
func plain(level, kind int32) bool {
	switch level {
	case unix.SOL_IP, unix.SOL_IPV6, unix.SOL_UDP:
		return true
	case unix.SOL_SOCKET:
		return kind == unix.SO_TIMESTAMPING || kind == unix.SO_TIMESTAMPING_NEW || kind == unix.SCM_TXTIME
	}
	return false
}

// align is CMSG_ALIGN.
func align(n int) int { return (n + 7) &^ 7 }

// message appends control data of a unix socket.
func message(b []byte, kind int32, data []byte) []byte {
	e := binary.NativeEndian
	b = e.AppendUint64(b, uint64(unix.SizeofCmsghdr+len(data)))
	b = e.AppendUint32(b, unix.SOL_SOCKET)
	b = e.AppendUint32(b, uint32(kind))
	b = append(b, data...)
	return append(b, make([]byte, align(len(b))-len(b))...)
}
