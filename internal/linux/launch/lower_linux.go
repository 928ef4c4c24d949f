// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const namespaceMask = NewMount | NewCgroup | NewUTS | NewIPC | NewUser | NewPID | NewNet

// notBegun is the number of steps done where not even what comes before them is.
const notBegun = -1

// maxPassed is the highest number that a script may give a descriptor. The
// caller's own descriptors may have any number above 2, so these must be low
// and taken in order.
const maxPassed = 9

// firstKept is the number under which the reaper keeps the first of [Files.Hold].
const firstKept = 3

// lower turns a script into the list of calls of one launch. The first steps, as many
// as done, have been performed by preforked tasks, with what comes before them; without
// any, done is notBegun.
func lower(s *Script, f fds, oldKernel bool, done int) (*lowering, error) {
	l := newLowering(f, len(s.Steps)-max(done, 0))
	l.alone = true // or is soon: by then no step of these is performed
	l.dies = slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Op == OpDieWithParent })
	l.ownNetwork = s.Namespaces&NewNet != 0
	if s.Namespaces&^namespaceMask != 0 {
		l.fail("unknown namespaces %#x", uint64(s.Namespaces&^namespaceMask))
	}
	if oldKernel {
		l.clearHandlers()
	}
	if f.group > 0 {
		l.join(f.group)
	}
	if done == notBegun {
		if s.Enter {
			l.enter(s.Namespaces, 0)
		}
		l.begin()
	}
	for i := max(done, 0); i < len(s.Steps) && l.err == nil; i++ {
		l.step = i
		l.lowerStep(&s.Steps[i])
	}
	last := slices.IndexFunc(s.Steps, func(st Step) bool { return st.Op == OpExec || st.Op == OpHold })
	if last != len(s.Steps)-1 || l.inCommand == (s.Steps[last].Op == OpHold) {
		l.step = len(s.Steps) - 1
		l.fail("a script needs start-command, and one exec as its last step; or hold as its last one, without both")
	}
	if l.err != nil {
		return nil, l.err
	}
	l.link()
	return l, nil
}

// link tells the calls that clone where the new tasks go on. The list is complete.
func (l *lowering) link() {
	if l.fork >= 0 {
		l.calls[l.fork].want = uintptr(unsafe.Pointer(&l.calls[l.second]))
	}
	if l.entered >= 0 {
		l.calls[l.entered].want = uintptr(unsafe.Pointer(&l.calls[l.entered+2]))
	}
}

// beforeSteps is the step of calls that come before all.
const beforeSteps = -1

// enter lowers what comes before a first task that is made in other namespaces. The kernel puts
// a task into a process namespace only when it is made, so the task that enters makes a
// sibling there, which is this process's child like itself, and ends.
func (l *lowering) enter(ns Namespaces, flags uint64) {
	if len(l.fds.enter) == 0 {
		l.fail("enter needs Files.Enter")
		return
	}
	l.step = beforeSteps
	for _, fd := range l.fds.enter {
		l.call("setns", unix.SYS_SETNS, num(fd), num(0))
	}
	l.first, l.inside = l.newSlot(), new(int32)
	l.entered = len(l.calls)
	c := l.clone2(uint64(ns)|flags|unix.CLONE_PARENT|unix.CLONE_PIDFD, pin(l, l.inside), &l.insideShares)
	c.store(l.first)
	c.flags |= flagFork
	l.call("exit_group", unix.SYS_EXIT_GROUP, num(0))
	l.step = 0
}

// begin lowers what every first task begins with.
func (l *lowering) begin() {
	// An ignored SIGCHLD would make the kernel drop the command's status.
	action := pin(l, new([4]uint64)) // struct sigaction of the kernel, all zero: SIG_DFL
	l.call("rt_sigaction", unix.SYS_RT_SIGACTION, num(unix.SIGCHLD), action, num(0), num(8))
	// The reaper sends signals on request, and the command can forge a request.
	// In a session of its own "my own process group" names no process outside.
	// The command's group is another one of this session.
	l.call("setsid", unix.SYS_SETSID)
}

// clearHandlers does what CLONE_CLEAR_SIGHAND does where clone3 is missing.
// Signals that the caller ignores stay ignored only there, so the difference
// is that here they become default.
func (l *lowering) clearHandlers() {
	action := pin(l, new([4]uint64))
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if sig != unix.SIGKILL && sig != unix.SIGSTOP {
			l.call("rt_sigaction", unix.SYS_RT_SIGACTION, num(sig), action, num(0), num(8))
		}
	}
}

func (l *lowering) lowerStep(s *Step) {
	if !l.lowerTask(s) && !l.lowerFiles(s) && !l.lowerShared(s) && !l.lowerMount(s) && !l.lowerRights(s) {
		l.fail("%s cannot be performed", s.Op)
	}
}

// lowerTask lowers a step that is about the task itself, and reports whether it is one.
func (l *lowering) lowerTask(s *Step) bool {
	switch s.Op {
	case OpDieWithParent:
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_SET_PDEATHSIG), num(unix.SIGKILL))
		// The caller may have ended before the line above took effect.
		caller := &unix.PollFd{Fd: int32(l.fds.self), Events: unix.POLLIN}
		l.call("ppoll", unix.SYS_PPOLL, pin(l, caller), num(1), pin(l, new(unix.Timespec)), num(0)).expect(0)
	case OpSubreaper:
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_SET_CHILD_SUBREAPER), num(1))
	case OpStartCommand:
		l.startCommand()
	case OpHold:
		l.command = l.newSlot()
		l.call("getpid", unix.SYS_GETPID).store(l.command)
		const noCommand = 1 << 31
		l.becomeReaper(num(noCommand))
	case OpNewGroup:
		l.newGroup()
	case OpLimit:
		if s.Resource == unix.RLIMIT_NOFILE && s.Soft < 1<<12 {
			l.closeLeft() // what is opened later needs low numbers
		}
		l.call("prlimit64", unix.SYS_PRLIMIT64, num(0), num(s.Resource),
			pin(l, &unix.Rlimit{Cur: s.Soft, Max: s.Hard}), num(0))
	case OpJoin:
		if s.From < 1 || s.From > len(l.fds.join) {
			l.fail("join-cgroup needs entry %d of Files.Join", s.From)
			break
		}
		l.join(l.fds.join[s.From-1])
	case OpAffinity:
		l.affinity(s.Data)
	case OpChdir:
		l.call("chdir", unix.SYS_CHDIR, l.text(s.Path))
	case OpResetSignals:
		l.call("rt_sigprocmask", unix.SYS_RT_SIGPROCMASK, num(2 /* SIG_SETMASK */), pin(l, new(uint64)),
			num(0), num(8))
	case OpExec:
		if !l.inCommand {
			l.fail("exec before start-command")
		}
		l.call("execve", unix.SYS_EXECVE, l.text(s.Path), l.vector(s.Argv), l.vector(s.Env))
	default:
		return false
	}
	return true
}

// newGroup makes the group of the command. All signals are blocked, so a process in the
// background may put its group into the foreground.
func (l *lowering) newGroup() {
	l.call("setpgid", unix.SYS_SETPGID, num(0), num(0))
	if l.terminal {
		self := l.newSlot()
		l.call("getpid", unix.SYS_GETPID).store(self)
		l.call("ioctl TIOCSPGRP", unix.SYS_IOCTL, held(l.reopened[0]), num(unix.TIOCSPGRP),
			arg{v: uintptr(unsafe.Pointer(self))})
	}
}

// startCommand clones the second task, and lowers what the first one does
// meanwhile: it becomes the reaper. Descriptor 0
// of the reaper is the status pipe, descriptor 1 tells it the process id.
func (l *lowering) startCommand() {
	if l.inCommand {
		l.fail("start-command appears twice")
		return
	}
	l.command = l.newSlot()
	if l.dies { // the clone gets none
		l.call("prctl", unix.SYS_PRCTL, num(unix.PR_SET_PDEATHSIG), num(unix.SIGUSR2))
	}
	l.fork = len(l.calls)
	c := l.clone2(uint64(unix.SIGCHLD), num(0), &l.commandShares)
	c.store(l.command)
	c.flags |= flagFork
	l.becomeReaper(held(l.command))
	l.second, l.inCommand = len(l.calls), true
}

// clone2 lowers the clone of a task that goes on beside the one that makes it. Both share this process's
// memory, of which they use no stack. The word shares is 1 until the new one does not share it any more,
// because it has executed a program or has ended (set_tid_address(2)).
func (l *lowering) clone2(flags uint64, pidfd arg, shares **uint32) *call {
	*shares = new(uint32)
	**shares = 1
	at := pin(l, *shares)
	args := []arg{num(flags | unix.CLONE_VM | unix.CLONE_CHILD_CLEARTID), num(0), pidfd, at, num(0)}
	if runtime.GOARCH == "arm64" { // which has the last two the other way round
		args[3], args[4] = args[4], args[3]
	}
	return l.call("clone", unix.SYS_CLONE, args...)
}

// becomeReaper lowers the execution of the reaper, whose command has a process id.
func (l *lowering) becomeReaper(command arg) {
	// All three numbers are taken before the counter is made, so that it cannot
	// get one of them.
	count := l.newSlot()
	l.call("dup3", unix.SYS_DUP3, num(l.fds.status), num(0), num(0))
	l.call("dup3", unix.SYS_DUP3, num(l.fds.status), num(1), num(0))
	l.call("dup3", unix.SYS_DUP3, num(l.fds.reaper), num(2), num(unix.O_CLOEXEC))
	l.call("eventfd2", unix.SYS_EVENTFD2, command, num(0)).store(count)
	l.call("dup3", unix.SYS_DUP3, held(count), num(1), num(0))
	for i, fd := range l.fds.hold {
		l.call("dup3", unix.SYS_DUP3, num(fd), num(firstKept+i), num(0))
	}
	l.closeFrom(firstKept + len(l.fds.hold))
	l.call("execveat", unix.SYS_EXECVEAT, num(2), l.text(""), l.vector([]string{"sallyport-reaper"}),
		l.vector(nil), num(unix.AT_EMPTY_PATH))
}

func (l *lowering) closeFrom(n int) {
	l.call("close_range", unix.SYS_CLOSE_RANGE, num(n), num(^uint32(0)), num(0))
}

// join writes the task itself into a control group's open list. A task that has
// just been cloned is alone in its process, so both kinds of list will do; only for
// the one called tasks need the kernel not hold up the forks of all other processes.
func (l *lowering) join(list int) { l.write(num(list), "0") } // 0 is the writer

// affinity keeps the task to processors.
func (l *lowering) affinity(set []byte) {
	const most = 1 << 10 // 8192 processors, as many as Linux can be built for
	if len(set) == 0 || len(set) > most {
		l.fail("affinity needs 1 to %d bytes", most)
		return
	}
	mask := l.words((len(set) + 7) / 8) // the kernel takes whole words
	at := unsafe.Pointer(&mask[0])
	copy(unsafe.Slice((*byte)(at), len(set)), set)
	l.call("sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, num(0), num(8*len(mask)), arg{v: uintptr(at)})
}

// lowerFiles lowers a step about descriptors, and reports whether it is one.
func (l *lowering) lowerFiles(s *Step) bool {
	switch s.Op {
	case OpTerminal:
		l.lowerTerminal(s)
	case OpListen:
		l.lowerListen(s)
	case OpStdio:
		for i, n := range l.fds.stdio {
			from := num(n)
			if own := l.reopened[i]; own != nil {
				from = held(own)
			}
			l.call("dup3", unix.SYS_DUP3, from, num(i), num(0))
		}
	case OpCloseFiles:
		l.closeFiles(s)
	case OpPass:
		if l.fds.pass == 0 {
			l.fail("pass-descriptor needs Files.Status")
		}
		l.call("dup3", unix.SYS_DUP3, num(l.fds.pass), l.number(s), num(0))
	case OpMemory:
		n := l.number(s)
		l.call("memfd_create", unix.SYS_MEMFD_CREATE, l.text("sallyport"), num(0)).expect(n.v)
		if size := len(s.Data); size > 0 {
			l.keep = append(l.keep, s.Data)
			l.call("write", unix.SYS_WRITE, n, arg{v: uintptr(unsafe.Pointer(&s.Data[0]))},
				num(size)).expect(uintptr(size))
			l.call("lseek", unix.SYS_LSEEK, n, num(0), num(unix.SEEK_SET))
		}
	case OpReopen:
		l.reopen(s)
	default:
		return false
	}
	return true
}

// closeFiles closes descriptors. What is duplicated lies above all that are kept, and what
// else has their numbers is not needed any more.
func (l *lowering) closeFiles(s *Step) {
	from := int(max(s.Value, 3))
	for _, n := range s.Keep {
		extra := l.fds.extra[n]
		if extra == 0 || n < from {
			l.fail("close-files keeps descriptor %d, which needs Files.Extra", n)
			return
		}
		l.call("dup3", unix.SYS_DUP3, num(extra), num(n), num(0))
		if n > from {
			l.call("close_range", unix.SYS_CLOSE_RANGE, num(from), num(n-1), num(0))
		}
		from = n + 1
	}
	l.closeFrom(from)
}

// number is the one that a step gives a descriptor.
func (l *lowering) number(s *Step) arg {
	if s.Value < 3 || s.Value > maxPassed {
		l.fail("the new descriptor must be 3 to %s", strconv.Itoa(maxPassed))
	}
	return num(s.Value)
}

// A reopening is what one OpReopen asks for.
type reopening struct {
	path   string
	id     ID
	flags  uint64
	offset int64
}

// reopen replaces a standard descriptor.
func (l *lowering) reopen(s *Step) {
	if s.Stdio < 1 || s.Stdio > 3 {
		l.fail("reopen names one of the three standard descriptors")
		return
	}
	key := reopening{s.Path, s.ID, s.Value, s.Offset}
	into := l.opened[key]
	if into == nil { // else as where one descriptor was duplicated
		into = l.newSlot()
		l.opened[key] = into
		l.open(s.Path, s.ID, s.Value|unix.O_NOCTTY, l.place)
		l.above(l.place, into)
		if s.Offset > 0 {
			l.call("lseek", unix.SYS_LSEEK, held(into), num(uint64(s.Offset)), num(unix.SEEK_SET))
		}
	}
	l.reopened[s.Stdio-1] = into
}
