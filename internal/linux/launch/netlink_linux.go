// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lowerNetlink sends messages to the kernel and compares its answer with an acknowledgment. An
// error comes first and is longer, since it repeats the message that it is about.
func (l *lowering) lowerNetlink(s *Step) {
	size := acknowledged(s.Data)
	if size == 0 {
		l.fail("netlink takes messages of which one asks for an acknowledgment")
		return
	}
	// The kernel answers with struct nlmsghdr, an error number that is 0, and the head of the
	// message, which begins with its size.
	const answer, number = 2*unix.SizeofNlMsghdr + 4, unix.SizeofNlMsghdr
	got := l.words(answer/8 + 1)
	at := unsafe.Pointer(&got[0])
	l.keep = append(l.keep, s.Data)
	l.call("socket", unix.SYS_SOCKET, num(unix.AF_NETLINK), num(unix.SOCK_RAW|unix.SOCK_CLOEXEC),
		num(s.Value)).store(l.place)
	l.call("sendto", unix.SYS_SENDTO, held(l.place), arg{v: uintptr(unsafe.Pointer(&s.Data[0]))},
		num(len(s.Data)), num(0), num(0), num(0)).expect(uintptr(len(s.Data)))
	l.call("recvfrom", unix.SYS_RECVFROM, held(l.place), arg{v: uintptr(at)}, num(8*len(got)),
		num(unix.MSG_DONTWAIT), num(0), num(0)).expect(answer)
	l.compare(unsafe.Add(at, number), uint64(size)<<32)
	l.close(l.place)
}

// acknowledged returns the size of the one message of a list that asks for an acknowledgment, or 0
// if there is none, or another number of them, or something else.
func acknowledged(messages []byte) (size int) {
	for len(messages) > 0 {
		if len(messages) < unix.SizeofNlMsghdr {
			return 0
		}
		n := int(binary.NativeEndian.Uint32(messages))
		if n < unix.SizeofNlMsghdr || n > len(messages) || n%4 != 0 {
			return 0
		}
		if binary.NativeEndian.Uint16(messages[6:])&unix.NLM_F_ACK != 0 {
			if size != 0 {
				return 0
			}
			size = n
		}
		messages = messages[n:]
	}
	return size
}
