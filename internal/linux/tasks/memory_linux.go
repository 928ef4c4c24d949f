// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import "golang.org/x/sys/unix"

// read copies memory of a task, which can change it at once, and returns how many bytes it
// could read.
func read(tid uint32, at uint64, b []byte) int {
	return gather(tid, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0, b)
}

// gather is read for what lies in pieces, from an offset in all of them on.
func gather(tid uint32, pieces []unix.RemoteIovec, from int, b []byte) int {
	if len(b) == 0 {
		return 0
	}
	var wanted []unix.RemoteIovec
	left := len(b)
	for _, p := range pieces {
		if p.Len <= from {
			from -= p.Len
			continue
		}
		p.Base, p.Len = p.Base+uintptr(from), min(p.Len-from, left)
		from, left = 0, left-p.Len
		if wanted = append(wanted, p); left == 0 {
			break
		}
	}
	local := unix.Iovec{Base: &b[0]}
	local.SetLen(len(b))
	got, _ := unix.ProcessVMReadv(int(tid), []unix.Iovec{local}, wanted, 0)
	return max(got, 0)
}

// PageSize is the smallest page of the machines that the filter is for: a piece that
// does not cross its end can be read as a whole or not at all.
const PageSize = 4096

// Peek copies memory of a task into b and returns how many bytes it could read. The task
// can change its memory at once: only the copy may be acted on.
func Peek(tid uint32, addr uint64, b []byte) int {
	if addr == 0 || len(b) == 0 {
		return 0
	}
	local := unix.Iovec{Base: &b[0]}
	local.SetLen(len(b))
	// The copy ends before a piece that is not mapped, so the pages are pieces.
	var remote [3]unix.RemoteIovec
	n := 0
	for at, left := addr, uint64(len(b)); left > 0 && n < len(remote); n++ {
		size := min(left, PageSize-at%PageSize)
		remote[n] = unix.RemoteIovec{Base: uintptr(at), Len: int(size)}
		at, left = at+size, left-size
	}
	got, _ := unix.ProcessVMReadv(int(tid), []unix.Iovec{local}, remote[:n], 0)
	return max(got, 0)
}
