// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package cli

import (
	"os"
	"syscall"
)

// forwarded are the signals that are sent on to the command.
func forwarded() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// number returns the number of a signal, 0 when it has none.
func number(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}

// isStop reports whether a signal asks for a stop; there is none here.
func isStop(os.Signal) bool { return false }

// isResize reports whether a signal tells about the window; there is none here.
func isResize(os.Signal) bool { return false }

func stopSelf() {}
