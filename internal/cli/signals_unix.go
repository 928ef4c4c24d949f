// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli

import (
	"os"
	"syscall"
)

// forwarded are the signals that are sent on to the command. They are those that
// people, terminals and supervisors send to a program they mean; SIGCHLD, SIGPIPE
// and what the runtime uses are about this process itself.
func forwarded() []os.Signal {
	return []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
	}
}

// number returns the number of a signal, 0 when it has none.
func number(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}

// isStop reports whether a signal asks for a stop that ends with SIGCONT.
func isStop(s os.Signal) bool { return s == syscall.SIGTSTP }

// isResize reports whether a signal tells that the window has another size.
func isResize(s os.Signal) bool { return s == syscall.SIGWINCH }

// stopSelf stops this process until SIGCONT arrives, as the terminal that sent
// SIGTSTP expects.
func stopSelf() {
	// It cannot fail for the process itself.
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
}
