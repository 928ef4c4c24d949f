// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"bytes"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pathMax is PATH_MAX of linux/limits.h, with the final zero.
const pathMax = 4096

// pageSize is the smallest page of the machines that the filter is for: a piece that
// does not cross its end is there whole or not at all.
const pageSize = 4096

// peek copies memory of a task into b and returns how much of it was there. What
// it copies can change at once, in the task: it is good for telling, and for being
// acted on as a copy.
func peek(tid uint32, addr uint64, b []byte) int {
	if addr == 0 || len(b) == 0 {
		return 0
	}
	local := unix.Iovec{Base: &b[0]}
	local.SetLen(len(b))
	// A piece that is not mapped ends the copy before it, so the pages are pieces.
	var remote [3]unix.RemoteIovec
	n := 0
	for at, left := addr, uint64(len(b)); left > 0 && n < len(remote); n++ {
		size := min(left, pageSize-at%pageSize)
		remote[n] = unix.RemoteIovec{Base: uintptr(at), Len: int(size)}
		at, left = at+size, left-size
	}
	got, _, errno := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(tid), uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&remote[0])), uintptr(n), 0)
	if errno != 0 {
		return 0
	}
	return int(got)
}

// path reads a name. EFAULT and ENAMETOOLONG are what the kernel says as well. The
// name is valid until the next one is read into the same buffer.
func (s *Supervisor) path(tid uint32, addr uint64, into *[pathMax]byte) ([]byte, syscall.Errno) {
	// Most names are short: a first piece that ends in it saves copying the rest.
	for _, size := range [...]int{256, pathMax} {
		got := peek(tid, addr, into[:size])
		if end := bytes.IndexByte(into[:got], 0); end >= 0 {
			return into[:end], 0
		}
		if got < size {
			return nil, unix.EFAULT
		}
	}
	return nil, unix.ENAMETOOLONG
}
