// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
// without the stacks of the runtime, and what was ignored when it began is, as far as that can be known.
// The runtime keeps only SIGHUP and SIGINT so, and tells of no other. But a script that ignores a signal
// has its commands ignore it, and a shell without job control has those in the background ignore SIGINT
// and SIGQUIT. An interactive shell ignores signals that its commands do not, and bash always SIGQUIT,
// except in a subshell. KeepSignals is called once, before a signal is caught.
func KeepSignals() {
	quits = act(syscall.SIGQUIT, new(action))
	parent := os.Getppid()
	name := shellOf(parent)
	set := ignoredBy(parent)
	has := func(s syscall.Signal) bool { return set&(1<<(s-1)) != 0 }
	if name == "" || has(syscall.SIGTSTP) && has(syscall.SIGTTOU) {
		return
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
		syscall.SIGALRM} {
		if has(s) {
			signal.Ignore(s)
		}
	}
	background := signal.Ignored(syscall.SIGINT) && !has(syscall.SIGINT)
	if background || has(syscall.SIGQUIT) && (slices.Contains(plainShells, name) || isSubshell(parent)) {
		signal.Ignore(syscall.SIGQUIT)
	}
}

// plainShells ignore no signal unless they are told.
var plainShells = []string{"dash", "busybox", "ash", "mksh"}

// ignoredBy returns the set of signals that a process ignores; empty where that is not known.
func ignoredBy(pid int) uint64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // empty after an error
	_, field, _ := bytes.Cut(status, []byte("\nSigIgn:\t"))
	field, _, _ = bytes.Cut(field, []byte("\n"))
	set, _ := strconv.ParseUint(string(field), 16, 64)
	return set
}

// isSubshell reports whether a shell has forked a process that goes on as a shell.
func isSubshell(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // empty after an error
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return false
	}
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	of, err2 := os.ReadFile("/proc/" + fields[1] + "/cmdline")
	return err == nil && err2 == nil && bytes.Equal(own, of)
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
