// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tty

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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

// The signals by which the kernel stops a job in the background that reads the terminal, or changes it.
const (
	backgroundRead  = syscall.SIGTTIN
	backgroundWrite = syscall.SIGTTOU
)

// stoppable reports whether a shell could continue this job: the parent is of the same session and another
// job (an orphaned process group has none).
func stoppable() bool {
	parent := syscall.Getppid()
	session, err := unix.Getsid(parent)
	own, _ := unix.Getsid(0) // it cannot fail
	group, err2 := syscall.Getpgid(parent)
	return err == nil && err2 == nil && session == own && group != syscall.Getpgrp()
}
