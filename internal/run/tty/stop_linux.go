// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stopJob does what Control-Z does to a job: it stops every process of this process group, and
// returns when this one was continued. A group that no shell looks after (an orphan, as one
// that a terminal window begins with) is not stopped: the kernel drops the signal then, which
// SIGSTOP would not be.
//
// The signal must have its default action, which the runtime never gives back once it caught
// it. It is ignored for the others' sake first, so that this process gets it once: on this
// thread, which is stopped before it returns from the call.
func stopJob() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// struct sigaction of the kernel; all zero is SIG_DFL, a handler of 1 is SIG_IGN.
	ignore, byDefault, caught := [4]uint64{1}, [4]uint64{}, [4]uint64{}
	act(&ignore, &caught)
	_ = unix.Kill(0, unix.SIGTSTP) // the others may be gone
	act(&byDefault, nil)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP) // it cannot fail for this thread
	act(&caught, nil)
}

// act changes the action of SIGTSTP. It cannot fail.
func act(to, before *[4]uint64) {
	_, _, _ = unix.Syscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTSTP),
		uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(before)), 8, 0, 0)
}
