// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"os"
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
// to this process, left its session and performed its first steps, and waits. Where these end
// with OpStartCommand, it is the reaper already, and the second task waits.
//
// A nil Preforked is none. Drop may be called at any time, also while a script is started.
type Preforked struct {
	*task
	owner      *Launcher
	namespaces Namespaces
	from       Files         // Enter, Trees and Hold of it
	steps      []Step        // performed before the script is known
	word       uint32        // futex: 0 while the task has to wait
	over       chan struct{} // closed when the first task shares no memory any more: it is the reaper, or has ended
	drop       sync.Once

	command bool     // the second task waits
	status  *os.File // of the reaper; nil while there is none
	ends    []int    // descriptors that the first task gets copies of
}

// Prefork begins to clone a first task into these namespaces and returns at once.
// The caller starts a script with it soon, or drops it. It returns nil where that gains
// nothing, because other launches keep the processors busy, or where the kernel lacks
// clone3(2).
//
// first are the steps that the script will begin with, or nil: those that need nothing which is
// found out later, and with a process namespace OpStartCommand as the last one. A script that begins
// differently starts without the task; so does every script when one of these steps fails.
//
// Of from only Enter, Trees and Hold count. With Enter the task begins in those namespaces, as a script
// with Enter and the same files. The reaper keeps all of Hold, and a script that holds others starts
// without the task. They stay open until Start or Drop has returned.
func (l *Launcher) Prefork(ns Namespaces, first []Step, from Files) *Preforked {
	l.mu.Lock()
	if l.old.Load() || l.jobs >= runtime.GOMAXPROCS(0) || l.enterLocked() != nil {
		l.mu.Unlock()
		return nil
	}
	pre := &Preforked{owner: l, namespaces: ns, steps: first, from: from}
	pre.command = len(first) > 0 && first[len(first)-1].Op == OpStartCommand
	var release func()
	if s := l.standby; s != nil {
		l.standby = nil
		l.jobs++
		pre.task, pre.over, release = &s.task, s.over, s.release
	} else {
		pre.task, pre.over = new(task), make(chan struct{})
		job := l.jobLocked(pre.clone, pre.over)
		release = func() { l.work <- job } // with so few jobs there is room
		l.standByLocked()
	}
	l.mu.Unlock()
	pre.begin()
	release()
	return pre
}

// begin lays down what the task does before it has a script.
func (pre *Preforked) begin() {
	ns := pre.namespaces
	if len(pre.from.Enter) > 0 {
		ns = 0 // these are its sibling's
	}
	f := fds{self: pre.owner.self, reaper: pre.owner.reaper, enter: numbers(pre.from.Enter), trees: numbers(pre.from.Trees)}
	err := pre.hold(&f)
	// It shares the table of descriptors until it has its script: those that the
	// script needs may not be open yet.
	pre.prepare(ns, unix.CLONE_FILES, pre.lower(f), 0)
	if err != nil || pre.low.err != nil { // a start without it finds out why
		pre.c.script = nil
	}
}

// hold opens what the first task needs as the reaper.
func (pre *Preforked) hold(f *fds) (err error) {
	if !pre.command {
		return nil
	}
	if pre.status, f.status, err = statusPipe(); err != nil {
		return err
	}
	pre.ends = append(pre.ends, f.status)
	for _, file := range pre.from.Hold {
		if file == nil {
			continue
		}
		fd, err := above(file, maxPassed)
		if err != nil {
			return err
		}
		pre.ends, f.hold = append(pre.ends, fd), append(f.hold, fd)
	}
	return nil
}

// lower lays down what the task does before it has a script.
func (pre *Preforked) lower(f fds) *lowering {
	low := newLowering(f, len(pre.steps))
	if len(pre.from.Enter) > 0 {
		low.enter(pre.namespaces, unix.CLONE_FILES)
	}
	low.dies, low.sharesFiles = true, true
	// While it waits, with all signals blocked, no other signal would end it.
	low.lowerStep(&Step{Op: OpDieWithParent})
	low.begin()
	for i := range pre.steps {
		if !mayPrecede(pre.steps[i].Op) || low.inCommand {
			low.fail("a preforked task does not perform it")
		}
		if pre.steps[i].Op == OpStartCommand && pre.namespaces&NewPID == 0 {
			low.fail("a command that waits needs a process namespace, with which it ends")
		}
		low.lowerStep(&pre.steps[i])
	}
	low.call("futex", unix.SYS_FUTEX, arg{v: uintptr(unsafe.Pointer(&pre.word))}, num(futexWait), num(0), num(0)).flags |= flagAwait
	low.ownFiles()
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
		OpDevpts, OpProc, OpTake, OpClone, OpAttach, OpSetMount, OpSeccomp, OpCaps, OpStartCommand:
		return true
	}
	return false
}

// fits reports whether a script can go on from where the task is.
func (pre *Preforked) fits(s *Script, f *Files) bool {
	return pre != nil && s.Namespaces == pre.namespaces && slices.Equal(pre.from.Enter, f.Enter) && slices.Equal(pre.from.Trees, f.Trees) &&
		f.Cgroup == nil && (!pre.command || pre.holds(f.Hold)) && len(s.Steps) > len(pre.steps) && SameSteps(s.Steps[:len(pre.steps)], pre.steps)
}

// holds reports whether the reaper keeps these files open.
func (pre *Preforked) holds(files []*os.File) bool {
	return !slices.ContainsFunc(files, func(f *os.File) bool { return f != nil && !slices.Contains(pre.from.Hold, f) })
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
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&pre.word)), futexWake, 1) // it may not wait yet
}

// collect waits for a task that has ended, or will, and closes what it has left in the table of
// descriptors, which it shared with this process.
func (pre *Preforked) collect() {
	if pre.pid > 0 {
		if pre.command {
			pre.wake() // where nothing kills it with the first one
			_ = unix.PidfdSendSignal(int(pre.pidfd), unix.SIGKILL, nil, 0)
			pre.awaitCommand()
		}
		collectNow(int(pre.pidfd))
	}
	for _, s := range pre.low.files {
		if *s != 0 {
			unix.Close(int(*s))
		}
	}
	if pre.status != nil {
		pre.status.Close()
	}
	pre.closeEnds()
	pre.owner.launches.Done()
}

// awaitCommand waits until the second task, if there is one, shares no memory any more.
func (pre *Preforked) awaitCommand() {
	if *pre.low.command != 0 {
		awaitOwn(pre.low.commandShares)
	}
}

func (pre *Preforked) closeEnds() {
	for _, fd := range pre.ends {
		unix.Close(fd)
	}
}

// start gives the waiting task its script. It returns errNotPreforked when there is no
// such task, or when the script does not fit it.
func (pre *Preforked) start(s *Script, f Files) (*Process, error) {
	if !pre.fits(s, &f) {
		return nil, errNotPreforked
	}
	if pre.command {
		f.Enter, f.Trees, f.Hold = nil, nil, nil // it has them
	}
	own, release, err := pre.owner.duplicate(s, f)
	if err != nil {
		return nil, err
	}
	defer release()
	if pre.command {
		return pre.startCommand(s, own)
	}
	return withStatus(own, func(own fds) (*Process, error) { return pre.startReaper(s, own) })
}

// startReaper gives the first task its script.
func (pre *Preforked) startReaper(s *Script, f fds) (*Process, error) {
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

// startCommand gives the second task its script. That is not woken before the first one is the reaper, so
// it has executed nothing when a start without it is tried.
func (pre *Preforked) startCommand(s *Script, f fds) (*Process, error) {
	low, err := lower(s, f, false, len(pre.steps))
	if err != nil {
		return nil, err
	}
	p, err := (*Process)(nil), errNotPreforked
	pre.drop.Do(func() {
		<-pre.over
		low.command, low.commandShares = pre.low.command, pre.low.commandShares
		if pre.pid <= 0 || pre.c.errno != 0 || *low.command == 0 || atomic.LoadUint32(low.commandShares) == 0 {
			pre.collect()
			return
		}
		pre.c.then = &low.calls[0]
		pre.wake()
		pre.awaitCommand()
		runtime.KeepAlive(low)
		if pre.failedEarly() {
			pre.collect()
			return
		}
		pre.closeEnds()
		if p, err = pre.owner.process(s, low, pre.task); err == nil {
			p.status = pre.status
		} else {
			pre.status.Close()
		}
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
