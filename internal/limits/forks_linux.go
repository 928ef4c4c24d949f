// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
)

// forks notes that a command has reached a limit on processes that a resource limit holds.
// The kernel denies what is above it and tells the program alone, so the observer of system
// calls asks before each new process or thread. Tasks are counted only when there
// can be as many as allowed, and never again when the limit was reached once: the kernel
// goes on denying, and a program that tries for ever costs no more than others.
type forks struct {
	limit int // of processes and threads, without the reaper
	most  int // there are at most so many

	once    sync.Once
	started chan struct{} // closed by start
	tasks   func() int    // counts them; nil when the launch has failed

	reached atomic.Bool
}

func newForks(limit int) *forks {
	return &forks{limit: limit, most: 1, started: make(chan struct{})}
}

// start hands over how tasks are counted, when the command has started. The first call
// counts.
func (f *forks) start(tasks func() int) {
	f.once.Do(func() {
		f.tasks = tasks
		close(f.started)
	})
}

// exceeds reports whether one more process or thread is the first that is above the limit.
// It waits for start. It is called by one goroutine at a time. Tasks that end while others
// are counted may count.
func (f *forks) exceeds() bool {
	if f.reached.Load() {
		return false
	}
	if f.most >= f.limit {
		<-f.started
		if f.tasks == nil {
			return false
		}
		f.most = f.tasks()
	}
	if f.most >= f.limit {
		f.reached.Store(true)
		return true
	}
	f.most++
	return false
}

// Tasks counts the processes and threads in a process namespace, without its first process,
// whose PID it is given: as the kernel counts for RLIMIT_NPROC, with those that have ended
// and were not waited for. It reads the /proc of the sandbox, which lists no others. Programs
// that this user may not look at are missing.
func Tasks(reaper int) int {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/root/proc", reaper))
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	n := 0
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err != nil || pid == 1 {
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(int(dir.Fd()), name+"/task", &st, 0) == nil {
			n += max(int(st.Nlink)-2, 1) // a link for each, as a directory has for those in it
		}
	}
	return n
}

// Forks returns the function that an observer must ask before each new process or thread
// of the command, and which returns true where that must fail with EAGAIN. It is nil where
// none has to at a sandbox level: without a limit on processes, and where a control group or
// a watch holds it. Forks waits for the control group.
func (b *Bounds) Forks(level string) func() bool {
	if b == nil || b.want.PIDs == 0 || !byRlimit(level) {
		return nil
	}
	if g, err := b.group(); err != nil || g.by(pids) != "" {
		return nil
	}
	return b.forks.exceeds
}

// byRlimit reports whether a resource limit can hold the limit on processes at a level. It
// counts per user in a user namespace. Only the native level makes a new one for each
// command, and the kernel does not apply resource limits to the system's root user.
func byRlimit(level string) bool {
	return level == plan.LevelNative && !hostfacts.SystemRoot()
}
