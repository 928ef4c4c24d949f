// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package tty

import "syscall"

// stopJob stops this process until SIGCONT arrives, as the terminal that sent SIGTSTP expects.
func stopJob() {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // it cannot fail for the process itself
}
