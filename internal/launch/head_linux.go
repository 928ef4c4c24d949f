// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNoHead says that a head start cannot be used. Nothing has happened.
var errNoHead = errors.New("launch: no head start")

// A Head is a head start: a first task that was cloned before its script is known. It
// is in its namespaces already, which the kernel takes longest for, and waits. Until
// then it has tied its life to this process, left its session, and performed the steps
// that it was begun with.
//
// A nil Head is none. Drop may be called at any time, also while a script is started.
type Head struct {
	owner      *Launcher
	namespaces Namespaces
	first      []Step    // which it performs at once
	before     *lowering // what it does before it has a script
	args       *cloneArgs
	pidfd      *int32
	c          context
	word       uint32 // 0 while it is to wait
	pid        int64
	over       chan struct{} // closed when the task shares no memory any more: it is the reaper, or has ended
	drop       sync.Once
}

// HeadStart begins to clone a first task into these namespaces and returns at once.
// The caller starts a script with it soon, or drops it. It returns nil where a head
// start would help nobody, because others keep the processors busy, or where the
// kernel lacks clone3(2); and a Head that will not be used where it refuses.
//
// first are steps that the script will begin with, or nil: of those that take rights
// away, no others. Where the script begins differently, or one of them fails, the Head
// is not used.
func (l *Launcher) HeadStart(ns Namespaces, first []Step) *Head {
	h, clone := l.Head(ns, first)
	switch {
	case h == nil:
	case l.AnyThread:
		go clone()
	default:
		clone()
	}
	return h
}

// Head is HeadStart for a caller with a goroutine to spare: clone, which has to be
// called, does the cloning, and may block for as long as that takes and until the task
// has its script or is dropped. It is nil where the Head is.
func (l *Launcher) Head(ns Namespaces, first []Step) (h *Head, clone func()) {
	l.mu.Lock()
	if l.closed || l.old.Load() || l.jobs >= runtime.GOMAXPROCS(0) || l.prepareLocked() != nil {
		l.mu.Unlock()
		return nil, nil
	}
	h = &Head{
		owner: l, namespaces: ns, first: first, before: &lowering{
			files: files{self: l.self}, fork: -1, words: make([]uint64, slotsFor(&Script{Steps: first})),
		},
		args: new(cloneArgs), pidfd: new(int32), over: make(chan struct{}),
	}
	*h.pidfd = -1
	*h.args = cloneArgs{
		// It shares the table of descriptors until it has its script: those that the
		// script needs may not be open yet.
		flags:      uint64(ns) | unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_FILES | unix.CLONE_PIDFD | cloneClearSighand,
		pidfd:      uint64(uintptr(unsafe.Pointer(h.pidfd))),
		exitSignal: uint64(unix.SIGCHLD),
	}
	if h.lower() != nil {
		l.mu.Unlock()
		return nil, nil // the script will say so
	}
	h.c = context{
		nr:     unix.SYS_CLONE3,
		args:   [5]uintptr{uintptr(unsafe.Pointer(h.args)), h.args.into(nil)},
		script: &h.before.calls[0],
		slots:  &h.before.words[0],
	}
	job := l.jobLocked(func() {
		h.pid = spawnBlocked(&h.c)
		runtime.KeepAlive(h)
	}, h.over)
	l.mu.Unlock()
	if l.AnyThread {
		return h, job
	}
	return h, func() { l.work <- job } // with so few jobs nobody waits
}

// lower lays down what the task does before it has a script.
func (h *Head) lower() error {
	b := h.before
	b.place = b.newSlot()
	// While it waits, with all signals blocked, no other one would end it.
	if err := b.lowerTask(&Step{Op: OpDieWithParent, Signal: int(unix.SIGKILL)}); err != nil {
		return err
	}
	b.separate()
	for i := range h.first {
		if !mayLead(h.first[i].Op) {
			return &ScriptError{Step: i, Reason: "a head start cannot perform it"}
		}
		if err := b.lowerStep(&h.first[i]); err != nil {
			return err
		}
	}
	const wait = 128 // FUTEX_WAIT, FUTEX_PRIVATE_FLAG (linux/futex.h)
	b.call("futex", unix.SYS_FUTEX, arg{v: uintptr(unsafe.Pointer(&h.word))}, num(wait), zero(), zero()).flags |= flagAwait
	b.call("unshare", unix.SYS_UNSHARE, num(unix.CLONE_FILES))
	b.call("jump", 0).flags |= flagJump
	return nil
}

// mayLead reports whether a head start can perform a step: one that needs nothing of
// what is found out later, and opens no descriptor. The table is shared with this
// process, and what another thread clones in that moment takes a copy along: a file
// open for writing keeps its mount from becoming read-only.
func mayLead(op Op) bool {
	switch op {
	case OpDieWithParent, OpSecureBits, OpDropBounding, OpClearAmbient, OpNoNewPrivs:
		return true
	}
	return false
}

// fits reports whether a script can go on from where the task is.
func (h *Head) fits(s *Script) bool {
	return s.Namespaces == h.namespaces && s.Cgroup == nil && len(s.Steps) > len(h.first) &&
		slices.EqualFunc(s.Steps[:len(h.first)], h.first, func(a, b Step) bool { return reflect.DeepEqual(a, b) })
}

// wake ends the wait.
func (h *Head) wake() {
	const wake = 129 // FUTEX_WAKE, FUTEX_PRIVATE_FLAG
	atomic.StoreUint32(&h.word, 1)
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&h.word)), wake, 1) // nobody waits, or all do
}

// Drop ends a head that nothing was started with, and waits until it has ended. It may
// be called twice, and does nothing to one that was used.
func (h *Head) Drop() {
	if h == nil {
		return
	}
	h.drop.Do(func() {
		h.wake()
		<-h.over
		h.bury()
	})
}

// bury collects a task that has ended, or will.
func (h *Head) bury() {
	if h.pid <= 0 {
		return
	}
	p := &Process{pidfd: int(*h.pidfd)}
	p.reap()
	unix.Close(p.pidfd)
}

// launch gives the waiting task its script. It returns errNoHead when there is no such
// task, or when the script is for other namespaces or begins in a control group.
func (h *Head) launch(s *Script, stdio [3]int, statusEnd int) (*Process, error) {
	if h == nil || !h.fits(s) {
		return nil, errNoHead
	}
	passed, release, err := h.owner.pass(s, statusEnd)
	if err != nil {
		return nil, err
	}
	defer release()
	low, err := compile(s, stdio, passed, false, len(h.first))
	if err != nil {
		return nil, err
	}
	used := false
	h.drop.Do(func() { used = true })
	if !used {
		return nil, errNoHead
	}
	select {
	case <-h.over: // it was killed, or never came to be
		h.bury()
		return nil, errNoHead
	default:
	}
	h.c.then, h.c.slots = &low.calls[0], &low.words[0]
	h.wake()
	<-h.over
	runtime.KeepAlive(low)
	runtime.KeepAlive(s)
	if h.pid <= 0 || h.ownFailure() {
		h.bury()
		return nil, errNoHead // a start without one finds out why
	}
	handle, err := raise(int(*h.pidfd))
	if err != nil {
		_ = unix.Kill(int(h.pid), unix.SIGKILL)
		_, _ = unix.Wait4(int(h.pid), nil, 0, nil)
		return nil, err
	}
	return h.owner.finish(s, low, &h.c, int(h.pid), handle)
}

// ownFailure reports whether the task failed before its script.
func (h *Head) ownFailure() bool {
	for i := range h.before.calls {
		if h.c.failed == &h.before.calls[i] {
			return true
		}
	}
	return false
}
