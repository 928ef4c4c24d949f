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

// FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG (linux/futex.h).
const (
	futexWait = 128
	futexWake = 129
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
// first are the steps that the script will begin with, or nil: those that need nothing which is
// found out later. A script that begins differently starts without the task; so does every script when
// one of these steps fails.
//
// Of from only Enter and Trees count. With Enter the task begins in those namespaces, as a script
// with Enter and the same files. They stay open until Start or Drop has returned.
func (l *Launcher) Prefork(ns Namespaces, first []Step, from Files) *Preforked {
	l.mu.Lock()
	if l.old.Load() || l.jobs >= runtime.GOMAXPROCS(0) || l.enterLocked() != nil {
		l.mu.Unlock()
		return nil
	}
	pre := &Preforked{task: new(task), owner: l, namespaces: ns, steps: first, from: from,
		over: make(chan struct{})}
	job := l.jobLocked(pre.clone, pre.over)
	l.mu.Unlock()
	pre.begin()
	l.work <- job // with so few jobs there is room
	return pre
}

// begin lays down what the task does before it has a script.
func (pre *Preforked) begin() {
	ns := pre.namespaces
	if len(pre.from.Enter) > 0 {
		ns = 0 // these are its sibling's
	}
	f := fds{self: pre.owner.self, reaper: pre.owner.reaper, enter: numbers(pre.from.Enter),
		trees: numbers(pre.from.Trees)}
	// It shares the table of descriptors until it has its script: those that the
	// script needs may not be open yet.
	pre.prepare(ns, unix.CLONE_FILES, pre.lower(f), 0)
	if pre.low.err != nil { // a start without it finds out why
		pre.c.script = nil
	}
}

// lower lays down what the task does before it has a script.
func (pre *Preforked) lower(f fds) *lowering {
	low := newLowering(f, len(pre.steps))
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
	low.call("futex", unix.SYS_FUTEX, arg{v: uintptr(unsafe.Pointer(&pre.word))}, num(futexWait), num(0),
		num(0)).flags |= flagAwait
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
func (pre *Preforked) fits(s *Script, f *Files) bool {
	return pre != nil && s.Namespaces == pre.namespaces && slices.Equal(pre.from.Enter, f.Enter) &&
		slices.Equal(pre.from.Trees, f.Trees) &&
		f.Cgroup == nil && len(s.Steps) > len(pre.steps) && SameSteps(s.Steps[:len(pre.steps)], pre.steps)
}

// Drop ends a task that no script was started with, and waits until it has ended. It may
// be called twice, and does nothing to one that was used.
func (pre *Preforked) Drop() {
	if pre == nil {
		return
	}
	pre.drop.Do(func() {
		pre.wake()
		<-pre.over
		pre.collect()
	})
}

// wake ends the wait.
func (pre *Preforked) wake() {
	atomic.StoreUint32(&pre.word, 1)
	// it may not wait yet
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&pre.word)), futexWake, 1)
}

// collect waits for a task that has ended, or will, and closes what it has left in the table of
// descriptors, which it shared with this process.
func (pre *Preforked) collect() {
	if pre.pid > 0 {
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
func (pre *Preforked) start(s *Script, f Files) (*Process, error) {
	if !pre.fits(s, &f) {
		return nil, errNotPreforked
	}
	own, release, err := pre.owner.duplicate(s, f)
	if err != nil {
		return nil, err
	}
	defer release()
	return withStatus(own, func(own fds) (*Process, error) { return pre.perform(s, own) })
}

// perform gives the task its script.
func (pre *Preforked) perform(s *Script, f fds) (*Process, error) {
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
		<-pre.over
		runtime.KeepAlive(low)
		if pre.pid <= 0 || pre.failedEarly() {
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
