// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package perform

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// AsCommand calls f without the rights by which root passes owners and modes.
func AsCommand(f func() syscall.Errno) syscall.Errno {
	const overrides = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER |
		1<<unix.CAP_FSETID | 1<<unix.CAP_SYS_RESOURCE
	return WithoutRights(overrides, f)
}

// WithoutRights calls f without some of the rights of root, which the command does not have.
func WithoutRights(rights uint32, f func() syscall.Errno) syscall.Errno {
	runtime.LockOSThread()
	restore, err := dropRights(rights)
	if err != nil {
		runtime.UnlockOSThread() // nothing has changed
		return unix.EPERM
	}
	defer func() {
		// A thread without its rights ends with the goroutine. Others live on: they may
		// have launched a command that the kernel would end with them.
		if restore() == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

// dropRights takes capabilities, of the first 32, from this thread. The goroutine is locked to
// the thread; restore gives them back.
func dropRights(rights uint32) (restore func() error, err error) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return nil, err
	}
	all := data[0].Effective
	if all&rights == 0 {
		return func() error { return nil }, nil
	}
	set := func(effective uint32) error {
		data[0].Effective = effective
		return unix.Capset(&head, &data[0])
	}
	return func() error { return set(all) }, set(all &^ rights)
}

// HasRight reports whether this process has one of the first 32 capabilities.
func HasRight(right int) bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&(1<<right) != 0
}
