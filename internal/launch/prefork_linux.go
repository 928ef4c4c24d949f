// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNotPreforked says that no preforked task can perform a script. Nothing has happened.
var errNotPreforked = errors.New("launch: no preforked task")

// Preforked is a first task that was cloned before its script is known. It
// is in its namespaces already, which the kernel needs most time for, has tied its life
// to this process, left its session and performed its first steps, and waits.
//
// A nil Preforked is none. Drop may be called at any time, also while a script is started.
type Preforked struct {
	*task
	owner      *Launcher
	namespaces Namespaces
	from       Files         // Enter and Trees of it
	steps      []Step        // performed before the script is known
	word       uint32        // futex: 0 while the task has to wait
	over       chan struct{} // closed when the task shares no memory any more: it is the reaper, or has ended
	drop       sync.Once
}

// Prefork begins to clone a first task into these namespaces and returns at once.
// The caller starts a script with it soon, or drops it. It returns nil where that gains
// nothing, because other launches keep the processors busy, or where the kernel lacks
// clone3(2).
//
// first are the steps that the script will begin with, or nil: of those that take rights
// away, no others. A script that begins differently starts without the task; so does
// every script when one of these steps fails.
//
// Of from only Enter and Trees count. With Enter the task begins in those namespaces, as a script
// with Enter and the same files. They stay open until Start or Drop has returned.
func (l *Launcher) Prefork(ns Namespaces, first []Step, from Files) *Preforked {
	l.mu.Lock()
	if l.old.Load() || l.jobs >= runtime.GOMAXPROCS(0) || l.enterLocked() != nil {
		l.mu.Unlock()
		return nil
	}
	pre := &Preforked{owner: l, namespaces: ns, steps: first, from: from, over: make(chan struct{})}
	low := pre.lower()
	if low.err != nil {
		l.mu.Unlock()
		l.launches.Done()
		return nil // the script has the same step
	}
	// It shares the table of descriptors until it has its script: those that the
	// script needs may not be open yet.
	if len(from.Enter) > 0 {
		ns = 0 // these are its sibling's
	}
	pre.task = newTask(ns, unix.CLONE_FILES, low, 0)
	job := l.jobLocked(pre.clone, pre.over)
	l.mu.Unlock()
	l.work <- job // with so few jobs there is room
	return pre
}

// lower lays down what the task does before it has a script.
func (pre *Preforked) lower() *lowering {
	low := newLowering(fds{self: pre.owner.self, enter: numbers(pre.from.Enter), trees: numbers(pre.from.Trees)}, len(pre.steps))
	if len(pre.from.Enter) > 0 {
		low.enter(pre.namespaces, unix.CLONE_FILES)
	}
	// While it waits, with all signals blocked, no other signal would end it.
	low.lowerStep(&Step{Op: OpDieWithParent})
	low.begin()
	for i := range pre.steps {
		if !mayPrecede(pre.steps[i].Op) {
			low.fail("a preforked task does not perform it")
		}
		low.lowerStep(&pre.steps[i])
	}
	const wait = 128 // FUTEX_WAIT, FUTEX_PRIVATE_FLAG (linux/futex.h)
	low.call("futex", unix.SYS_FUTEX, arg{v: uintptr(unsafe.Pointer(&pre.word))}, num(wait), num(0), num(0)).flags |= flagAwait
	low.call("unshare", unix.SYS_UNSHARE, num(unix.CLONE_FILES))
	low.call("jump", 0).flags |= flagJump
	low.link()
	return low
}

// mayPrecede reports whether a preforked task can perform a step: one that needs nothing
// that is found out later, and opens no file for writing. The table of descriptors is shared with
// this process, and what another thread clones in that moment gets a copy: a file
// open for writing keeps its mount from becoming read-only.
func mayPrecede(op Op) bool {
	switch op {
	case OpDieWithParent, OpSecureBits, OpDropBounding, OpClearAmbient, OpNoNewPrivs,
		OpDevpts, OpProc, OpTake, OpClone, OpAttach, OpSetMount:
		return true
	}
	return false
}

// fits reports whether a script can go on from where the task is.
func (pre *Preforked) fits(s *Script, f fds, from *Files) bool {
	return s.Namespaces == pre.namespaces && slices.Equal(pre.from.Enter, from.Enter) && slices.Equal(pre.from.Trees, from.Trees) &&
		f.cgroup == 0 && len(s.Steps) > len(pre.steps) && SameSteps(s.Steps[:len(pre.steps)], pre.steps)
}

// Drop ends a task that no script was started with, and waits until it has ended. It may
// be called twice, and does nothing to one that was used.
func (pre *Preforked) Drop() {
	if pre == nil {
		return
	}
	pre.drop.Do(func() {
		pre.wake()
		pre.collect()
	})
}

// wake ends the wait, and returns when the task shares no memory any more.
func (pre *Preforked) wake() {
	const wake = 129 // FUTEX_WAKE, FUTEX_PRIVATE_FLAG
	atomic.StoreUint32(&pre.word, 1)
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&pre.word)), wake, 1) // it may not wait yet
	<-pre.over
}

// collect waits for a task that has ended, or will, and closes what it has left in the table of
// descriptors, which it shared with this process.
func (pre *Preforked) collect() {
	if pre.pid > 0 && pre.entered() == nil {
		collectNow(int(pre.pidfd))
	}
	for _, s := range pre.low.files {
		if *s != 0 {
			unix.Close(int(*s))
		}
	}
	pre.owner.launches.Done()
}

// start gives the waiting task its script. It returns errNotPreforked when there is no
// such task, or when the script does not fit it.
func (pre *Preforked) start(s *Script, f fds, from *Files) (*Process, error) {
	if pre == nil || !pre.fits(s, f, from) {
		return nil, errNotPreforked
	}
	low, err := lower(s, f, false, len(pre.steps))
	if err != nil {
		return nil, err
	}
	p, err := (*Process)(nil), errNotPreforked
	pre.drop.Do(func() {
		select {
		case <-pre.over: // it was killed, or was never made
			pre.collect()
			return
		default:
		}
		pre.c.then = &low.calls[0]
		pre.wake()
		runtime.KeepAlive(low)
		if pre.pid <= 0 || pre.failedEarly() || pre.entered() != nil {
			pre.collect()
			return // a start without it finds out why
		}
		p, err = pre.owner.process(s, low, pre.task)
		pre.owner.launches.Done()
	})
	return p, err
}

// failedEarly reports whether the task failed before its script.
func (pre *Preforked) failedEarly() bool {
	for i := range pre.low.calls {
		if pre.c.failed == &pre.low.calls[i] {
			return true
		}
	}
	return false
}
