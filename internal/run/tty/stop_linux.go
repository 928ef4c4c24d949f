// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// stopJob does what a signal of the terminal does to a job: it stops every process of this process group, and
// returns when this one was continued. A group that no shell looks after (an orphan, as one
// that a terminal window begins with) is not stopped: the kernel drops the signal then, which
// SIGSTOP would not be.
//
// The signal must have its default action, which the runtime never gives back once it caught
// it. It is ignored for the others' sake first, so that this process gets it once: on this
// thread, which is stopped before it returns from the call.
func stopJob(s syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	caught := act(s, &action{1})
	_ = unix.Kill(0, s) // the others may be gone
	act(s, new(action))
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), s) // it cannot fail for this thread
	act(s, &caught)
}

// interruptJob does what a key of the terminal does to the other processes of this job.
func interruptJob(s syscall.Signal) {
	caught := act(s, &action{1})
	_ = unix.Kill(0, s) // the others may be gone
	act(s, &caught)
}
