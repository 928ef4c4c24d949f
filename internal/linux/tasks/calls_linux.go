// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package tasks

import "golang.org/x/sys/unix"

// callOf returns the kind of the system call with the number. Calls of the x32 interface
// have a bit of their own set and match none.
func callOf(number int64) call {
	switch number {
	case unix.SYS_READ, unix.SYS_READV, unix.SYS_PREAD64, unix.SYS_PREADV, unix.SYS_PREADV2:
		return callRead
	case unix.SYS_SPLICE, unix.SYS_TEE:
		return callSplice
	case unix.SYS_PPOLL:
		return callPPoll
	case unix.SYS_PSELECT6:
		return callPSelect
	case unix.SYS_EPOLL_PWAIT:
		return callEpoll
	case unix.SYS_EPOLL_PWAIT2:
		return callEpoll2
	}
	return oldCalls[number]
}
