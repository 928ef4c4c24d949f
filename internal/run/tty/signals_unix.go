// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tty

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded are the signals that are sent on to the program: those that people,
// terminals and supervisors send. SIGCHLD, SIGPIPE and what the runtime uses are about
// this process itself.
func forwarded() []os.Signal {
	return []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
	}
}

// The signals that ask for a stop, that end one, and that mean that the window has another
// size.
const (
	stopSignal     = syscall.SIGTSTP
	continueSignal = syscall.SIGCONT
	resizeSignal   = syscall.SIGWINCH
)

// endSelf ends this process by a signal that it catches until then.
func endSelf(s syscall.Signal) {
	signal.Reset(s)
	_ = syscall.Kill(syscall.Getpid(), s) // it cannot fail for the process itself
}
