// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errKilled says that the first task was killed, by hand or for want of memory.
var errKilled = errors.New("launch: the kernel killed the process that built the sandbox")

// cloneArgs is struct clone_args (linux/sched.h) up to cgroup. Kernels that do not
// know the last member take the size without it.
type cloneArgs struct {
	flags, pidfd uint64
	_, _         uint64 // child_tid, parent_tid
	exitSignal   uint64
	_            [5]uint64 // stack, stack_size, tls, set_tid, set_tid_size
	cgroup       uint64
}

// Flags of linux/sched.h that package unix lacks.
const (
	cloneClearSighand = 0x100000000
	cloneIntoCgroup   = 0x200000000 // from Linux 5.7 on
)

// A task is a first task: the call that clones it, what it performs, and what came of it.
// It lies on the heap, because the kernel gets addresses in it.
type task struct {
	c     context
	low   *lowering // what it performs
	args  cloneArgs
	pidfd int32
	pid   int64 // or a negative errno
	lost  error // why it made no task in the namespaces that it entered
}

// prepare prepares a task for namespaces and, unless that is 0, a control group. Flags
// are additional ones of clone(2).
func (t *task) prepare(ns Namespaces, flags uint64, low *lowering, cgroup int) {
	t.low, t.pidfd = low, -1
	t.args = cloneArgs{
		flags:      uint64(ns) | flags | unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD | cloneClearSighand,
		pidfd:      uint64(uintptr(unsafe.Pointer(&t.pidfd))),
		exitSignal: uint64(unix.SIGCHLD),
	}
	size := unsafe.Offsetof(t.args.cgroup)
	if cgroup > 0 {
		t.args.flags |= cloneIntoCgroup
		t.args.cgroup, size = uint64(cgroup), unsafe.Sizeof(t.args)
	}
	t.c.nr, t.c.args, t.c.script = unix.SYS_CLONE3, [5]uintptr{uintptr(unsafe.Pointer(&t.args)),
		size}, &low.calls[0]
}

// byOldClone makes the task one for the plain clone(2), which clears no handlers and
// knows no groups.
func (t *task) byOldClone(ns Namespaces, flags uintptr) {
	t.c.nr = unix.SYS_CLONE
	t.c.args = [5]uintptr{
		uintptr(ns) | flags | unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD | uintptr(unix.SIGCHLD),
		0, uintptr(unsafe.Pointer(&t.pidfd)),
	}
}

// clone makes the task and returns when it is the reaper or has ended. A command that it has made may
// still share this process's memory.
func (t *task) clone() {
	t.pid = spawnBlocked(&t.c)
	if t.pid > 0 && t.low.entered >= 0 {
		t.lost = t.enter()
	}
	runtime.KeepAlive(t)
}

// awaitOwn waits until a task shares this process's memory no more.
func awaitOwn(shares *uint32) {
	const wait = 0 // FUTEX_WAIT, as the kernel wakes: without FUTEX_PRIVATE_FLAG
	for atomic.LoadUint32(shares) != 0 {
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(shares)), wait, 1, 0, 0, 0)
	}
}

// launch performs one script on the current thread.
func (l *Launcher) launch(s *Script, f fds) (*Process, error) {
	t, err := l.cloned(s, f, l.old.Load())
	if err == nil && (t.pid == -int64(unix.ENOSYS) || t.pid == -int64(unix.EPERM)) && !l.old.Load() {
		l.old.Store(true) // container runtimes answer so, older ones with EPERM
		t, err = l.cloned(s, f, true)
	}
	switch {
	case err != nil:
		return nil, err
	case t.lost != nil:
		return nil, t.lost
	case t.pid < 0:
		return nil, cloneError(f.cgroup, syscall.Errno(-t.pid))
	}
	return l.process(s, t.low, t)
}

// cloned clones a task that performs a script.
func (l *Launcher) cloned(s *Script, f fds, old bool) (*task, error) {
	group := f.cgroup
	if old && group > 0 {
		list, err := unix.Openat(group, "cgroup.procs", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &CgroupError{Err: err}
		}
		defer unix.Close(list)
		f.cgroup, f.group = 0, list
	}
	low, err := lower(s, f, old, notBegun)
	if err != nil {
		return nil, err
	}
	ns, flags := s.Namespaces, uint64(0)
	if s.Enter {
		ns, flags = 0, unix.CLONE_FILES // the descriptor of its sibling is this process's
	}
	t := new(task)
	t.prepare(ns, flags, low, f.cgroup)
	if old {
		t.byOldClone(ns, uintptr(flags))
	}
	t.clone()
	return t, nil
}

// enter turns a task that has entered other namespaces into the one that it has made there.
func (t *task) enter() error {
	if *t.low.first != 0 {
		awaitOwn(t.low.insideShares)
	}
	collectNow(int(t.pidfd))
	t.pid, t.pidfd = int64(*t.low.first), *t.low.inside
	if t.pid != 0 {
		return nil
	}
	if t.c.errno == 0 {
		return errKilled
	}
	return &EnterError{Call: t.low.origin[t.failedAt(t.low)].name, Errno: syscall.Errno(t.c.errno)}
}

// failedAt returns the index of the call that failed.
func (t *task) failedAt(low *lowering) int {
	return int((uintptr(unsafe.Pointer(t.c.failed)) - uintptr(unsafe.Pointer(&low.calls[0]))) / unsafe.Sizeof(call{}))
}

// cloneError tells a refusal of the group from one of the namespaces: the kernel
// has answers that only a group gives (clone(2)).
func cloneError(group int, errno syscall.Errno) error {
	if group > 0 {
		switch errno {
		case unix.EACCES, unix.EBUSY, unix.EOPNOTSUPP, unix.ENODEV, unix.EBADF, unix.E2BIG:
			return &CgroupError{Err: errno}
		}
	}
	return &StepError{Index: -1, Call: "clone", Errno: errno}
}

// process turns a task that has performed a script, lowered as low, into a process or
// an error.
func (l *Launcher) process(s *Script, low *lowering, t *task) (*Process, error) {
	// A caller that closed 0 to 2 may put something else there later.
	pidfd, err := raise(int(t.pidfd))
	if err != nil {
		_ = unix.Kill(int(t.pid), unix.SIGKILL)
		_, _ = unix.Wait4(int(t.pid), nil, 0, nil)
		return nil, err
	}
	p := &Process{
		pid: int(t.pid), pidfd: pidfd, owner: l, ownPID: s.Namespaces&NewPID != 0,
		reading: make(chan struct{}, 1), known: make(chan struct{}),
	}
	if p.command = int(*low.command); p.command != 0 && low.commandShares != nil {
		awaitOwn(low.commandShares)
		runtime.KeepAlive(low)
	}
	if err = t.failure(s, low, p); err == nil {
		err = unix.SetNonblock(pidfd, true)
	}
	if err != nil {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		collectNow(pidfd)
		return nil, err
	}
	p.file = os.NewFile(uintptr(pidfd), "pidfd") // in the runtime's poller
	return p, nil
}

// failure returns why a task is not a reaper with a command, or nil.
func (t *task) failure(s *Script, low *lowering, p *Process) error {
	switch {
	case t.c.errno != 0:
	case p.command == 0:
		return errKilled
	default:
		return nil
	}
	i := t.failedAt(low)
	from := low.origin[i]
	if i > low.fork && i < low.second && !p.ownPID {
		// The reaper failed after the command had been executed, and there is
		// no process namespace that would end the command.
		if s.Enter {
			return &OrphanError{} // its number is one of the namespace that was entered
		}
		_ = unix.Kill(-p.command, unix.SIGKILL)
	}
	return &StepError{Index: from.step, Step: s.Steps[from.step], Call: from.name,
		Errno: syscall.Errno(t.c.errno)}
}

// spawnBlocked blocks all signals around spawn, so that no handler of the Go
// runtime runs in the child, which shares the runtime's memory. And it tells the
// scheduler that this thread is in a system call that blocks: it must not hold up the
// garbage collector.
//
//go:norace
//go:nosplit
func spawnBlocked(c *context) int64 {
	all, old := ^uint64(0), uint64(0)
	entersyscallblock()
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, 2 /* SIG_SETMASK */, uintptr(unsafe.Pointer(&all)),
		uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	pid := int64(0)
	if c.script != nil {
		pid = spawn(c)
	}
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, 2, uintptr(unsafe.Pointer(&old)), 0, 8, 0, 0)
	exitsyscall()
	return pid
}

//go:noescape
func spawn(c *context) int64

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()
