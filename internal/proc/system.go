// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"runtime"
	"syscall"
)

// System is the operating system that this program runs on, in the words of
// GOOS. Rooms that are portable ask here.
const System = runtime.GOOS

// SignalNumber returns the number of a signal; false for a value that is not a
// signal of this system.
func SignalNumber(sig os.Signal) (int, bool) {
	n, ok := sig.(syscall.Signal)
	return int(n), ok
}
