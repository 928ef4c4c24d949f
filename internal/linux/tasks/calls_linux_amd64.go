// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import "golang.org/x/sys/unix"

// oldCalls are calls that newer processors do not have (arch/x86/entry/syscalls).
var oldCalls = map[int64]call{
	unix.SYS_POLL: callPoll, unix.SYS_SELECT: callSelect, unix.SYS_EPOLL_WAIT: callEpoll,
	unix.SYS_RESTART_SYSCALL: callRestart,
}
