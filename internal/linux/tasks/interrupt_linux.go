// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Interval is how often a call that waits asks whether it is still needed.
const Interval = 50 * time.Millisecond

// Interruptible calls f, which makes a system call. Every [Interval] it asks whether to
// interrupt that call. The runtime's own signal does it, because it is meant to come at any
// time and nothing else happens then.
func Interruptible(f func(), due func() bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, tid := unix.Getpid(), unix.Gettid()
	var mu sync.Mutex
	var timer *time.Timer
	over := false
	mu.Lock()
	timer = time.AfterFunc(Interval, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if due() {
			_ = unix.Tgkill(pid, tid, unix.SIGURG)
		}
		timer.Reset(Interval)
	})
	mu.Unlock()
	f()
	mu.Lock()
	defer mu.Unlock()
	over = true
	timer.Stop()
}
