// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package tty

import (
	"os"
	"syscall"
)

// forwarded are the signals that are sent on to the program.
func forwarded() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// No signal asks for a stop, ends one, or means that the window has another size here.
const stopSignal, continueSignal, resizeSignal = syscall.Signal(-1), syscall.Signal(-1), syscall.Signal(-1)

// Nothing stops a job in the background here.
const backgroundRead, backgroundWrite = syscall.Signal(-1), syscall.Signal(-1)

func stoppable() bool { return false }

func stopJob(syscall.Signal) {}

func interruptJob(syscall.Signal) {}

// die ends this process.
func die(syscall.Signal) {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
}
