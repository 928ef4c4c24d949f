// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"syscall"
)

// Code returns the exit code of a process that has ended, as a shell has it: 128 and the number of the signal
// that ended it.
func Code(p *os.ProcessState) int {
	if status, ok := p.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}
