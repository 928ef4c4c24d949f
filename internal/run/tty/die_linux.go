// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// An action is struct sigaction of the kernel. All zero is SIG_DFL, a handler of 1 is SIG_IGN.
type action [4]uint64

// act changes the action for a signal, where to is not nil, and returns that of before. It cannot fail
// for a signal that can be caught.
func act(s syscall.Signal, to *action) (before action) {
	_, _, _ = unix.Syscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(to)),
		uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	return before
}

// die ends this process by a signal, without a core dump. It returns only as process 1, for which its own
// signals have no effect. The action is the kernel's, for that of the runtime prints its stacks for some.
func die(s syscall.Signal) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	act(s, new(action))
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &unix.Sigset_t{Val: [16]uint64{1 << (s - 1)}}, nil)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), s)
}

// The runtime's action for SIGQUIT, which prints its stacks.
var quits action

// KeepSignals has signals act on this process as on others, until they are caught: SIGQUIT ends it
// without the stacks of the runtime, and what was ignored when it began is, as far as a trial is worth its
// time. The runtime keeps SIGHUP and SIGINT and tells of no other. So under a script what its shell ignores
// now is tried, for shells ignore signals for themselves as well; and SIGQUIT where SIGINT is ignored, as a
// shell without job control has it for what it starts in the background. Not found is what only a program
// between has set, such as `env --ignore-signal`, or an interactive shell, which ignores many for itself.
// KeepSignals is called once, before a signal is caught.
func KeepSignals() {
	parent := os.Getppid()
	set := uint64(0)
	if shellOf(parent) != "" {
		set = ignoredBy(parent)
	}
	has := func(s syscall.Signal) bool { return set&(1<<(s-1)) != 0 }
	if signal.Ignored(syscall.SIGINT) && !has(syscall.SIGINT) {
		set |= 1 << (syscall.SIGQUIT - 1)
	}
	for s := syscall.Signal(1); s <= 64 && !(has(syscall.SIGTSTP) && has(syscall.SIGTTOU)); s++ {
		if has(s) && !slices.Contains(leftAlone, s) {
			keepIgnored(s)
		}
	}
	if !signal.Ignored(syscall.SIGQUIT) {
		quits = act(syscall.SIGQUIT, new(action))
	}
}

// leftAlone are signals that the runtime keeps as they were, needs itself, or that cannot be ignored;
// those of an action that ignores them; and 32 and 33, which belong to libraries for threads.
var leftAlone = []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGKILL, syscall.SIGSTOP,
	syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT, syscall.SIGCHLD, syscall.SIGURG,
	syscall.SIGWINCH, syscall.SIGPROF, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGBUS, syscall.SIGFPE,
	syscall.SIGSEGV, syscall.SIGSYS, syscall.SIGABRT, 32, 33}

// keepIgnored has this process ignore a signal that it ignored when it began. The runtime has stored the
// action of that time, and its handler goes by it for a signal that nothing in the program handles: then a
// copy of this process gets one, and either dies of it or does not. One that arrives here meanwhile acts
// the same way.
func keepIgnored(s syscall.Signal) {
	handler := act(s, nil)
	signal.Ignore(s)
	act(s, &handler)
	pid := trySignal(s)
	var status syscall.WaitStatus
	err := error(syscall.ECHILD)
	for again := pid > 0; again; again = errors.Is(err, syscall.EINTR) {
		_, err = syscall.Wait4(pid, &status, syscall.WALL, nil)
	}
	if err == nil && status.Exited() {
		signal.Ignore(s)
		return
	}
	act(s, new(action)) // what [signal.Stop] leads back to
	c := make(chan os.Signal, 1)
	signal.Notify(c, s)
	signal.Stop(c)
}

// trySignal starts a copy of this process that sends itself a signal and exits. It has one thread, and no
// other memory than this process had: nothing of the runtime runs in it but the handler.
//
//go:norace
func trySignal(s syscall.Signal) int {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid) * (1 - int(min(errno, 1)))
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0, 0) // no core
	self, _, _ := syscall.RawSyscall(syscall.SYS_GETPID, 0, 0, 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, self, self, uintptr(s))
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// ignoredBy returns the set of signals that a process ignores; empty where that is not known.
func ignoredBy(pid int) uint64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // empty after an error
	_, field, _ := bytes.Cut(status, []byte("\nSigIgn:\t"))
	field, _, _ = bytes.Cut(field, []byte("\n"))
	set, _ := strconv.ParseUint(string(field), 16, 64)
	return set
}

// UnderShell reports whether a shell started this process.
func UnderShell() bool { return shellOf(os.Getppid()) != "" }

// shellOf returns the name of the shell that a process runs; empty for another program.
func shellOf(pid int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if name = path.Base(name); err != nil || !programs.IsShell(name) && name != "busybox" {
		return ""
	}
	return name
}

// catchable has the runtime catch SIGQUIT again, as [signal.Notify] needs it.
func catchable(s os.Signal) {
	if s == syscall.SIGQUIT && quits != (action{}) {
		act(syscall.SIGQUIT, &quits)
	}
}

// ignored reports whether this process ignores a signal, also one that the runtime leaves alone.
func ignored(s os.Signal) bool {
	n, ok := s.(syscall.Signal)
	return signal.Ignored(s) || ok && act(n, nil)[0] == 1
}
