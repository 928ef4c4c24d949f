// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

// oldCalls is empty: libraries make select, poll and epoll_wait of the calls with a
// signal mask, none of which goes on by restart_syscall.
var oldCalls map[int64]call
