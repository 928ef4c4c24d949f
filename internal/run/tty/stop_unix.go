// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package tty

import (
	"os/signal"
	"syscall"
)

// stopJob stops this process until SIGCONT arrives, as the terminal that sent the signal expects.
func stopJob(syscall.Signal) {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // it cannot fail for the process itself
}

// interruptJob does nothing: a shell waits for the end of this process.
func interruptJob(syscall.Signal) {}

// die ends this process by a signal, if the runtime has the kernel's action for that.
func die(s syscall.Signal) {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL, syscall.SIGUSR1, syscall.SIGUSR2:
		signal.Reset(s)
		_ = syscall.Kill(syscall.Getpid(), s) // it cannot fail for the process itself
	}
}
