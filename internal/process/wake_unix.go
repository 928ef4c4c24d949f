// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import "syscall"

// wake lets a stopped tree go on, so that it can hear what was sent to it.
func wake(c Child) { _ = c.Signal(syscall.SIGCONT, true) }
