// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A standby is a task whose thread waits in the kernel to clone it. The scheduler of Go takes 0.1 to 0.3 ms
// to wake a thread: another processor takes over the goroutine after a pause, and then hands it to the
// thread that it is locked to.
type standby struct {
	task
	over chan struct{} // closed when the task shares no memory any more
}

// standByLocked makes the thread that stands by, once, at the second preforked task: most
// programs of the command line start one.
func (l *Launcher) standByLocked() {
	if l.preforks++; l.preforks == 2 {
		l.serving.Add(1)
		go l.thread(l.standBy)
	}
}

// standBy clones one preforked task after the other.
func (l *Launcher) standBy() {
	defer l.serving.Done()
	for {
		s := &standby{over: make(chan struct{})}
		s.c.wait = 1
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return
		}
		l.standby = s
		l.mu.Unlock()
		s.clone()
		l.mu.Lock()
		l.jobs--
		l.mu.Unlock()
		close(s.over)
	}
}

// release lets the thread clone the task, or go on where that has no script.
func (s *standby) release() {
	if s == nil {
		return
	}
	atomic.StoreUint32(&s.c.wait, 0)
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&s.c.wait)), futexWake, 1) // it may not wait yet
}
