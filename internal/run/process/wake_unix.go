// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import "syscall"

// wake continues a stopped tree, so that it can handle the signal that it got.
func wake(c Child) { _ = c.Signal(syscall.SIGCONT, true) }
