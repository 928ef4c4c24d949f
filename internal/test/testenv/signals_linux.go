// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"syscall"
	"unsafe"
)

// DefaultSignals gives ignored signals their default again. nohup, job-control shells and
// some languages start programs with ignored signals; commands that a test starts would
// inherit that and not end by them. Call it from TestMain.
func DefaultSignals() {
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		// struct sigaction of the kernel: handler, flags, restorer, mask.
		var action [4]uintptr
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), 0,
			uintptr(unsafe.Pointer(&action)), 8, 0, 0)
		const ignored = 1 // SIG_IGN
		if errno != 0 || action[0] != ignored {
			continue
		}
		action = [4]uintptr{}
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig),
			uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
}
