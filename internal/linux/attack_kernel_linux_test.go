// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAttacks ask for parts of the kernel that a command does not need. The
// arguments are chosen so that a call that gets through either fails with
// another errno or makes something that ends with the process.
func kernelAttacks() map[string]attack {
	zeros := make([]byte, 256)
	at := func(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
	// gone wants one of some errnos: others mean that the call got through to its
	// argument checks.
	gone := func(want []unix.Errno, nr uintptr, args ...uintptr) attack {
		return func(map[string]string) outcome {
			var a [6]uintptr
			copy(a[:], args)
			_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
			if slices.Contains(want, errno) {
				return denied(unix.ErrnoName(errno))
			}
			return breach("errno %d", int(errno))
		}
	}
	perm, nosys := []unix.Errno{unix.EPERM}, []unix.Errno{unix.ENOSYS}
	m := map[string]attack{
		"io-uring":     gone(nosys, unix.SYS_IO_URING_SETUP, 4, at(zeros)),
		"userfaultfd":  gone(perm, unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1),
		"bpf":          gone(perm, unix.SYS_BPF, 0, at(bpfMap()), 72),
		"perf":         gone(perm, unix.SYS_PERF_EVENT_OPEN, at(zeros), 0, ^uintptr(0), ^uintptr(0), 0),
		"clone3":       gone(nosys, unix.SYS_CLONE3, 0, 0),
		"setns-call":   gone(perm, unix.SYS_SETNS, ^uintptr(0), 0),
		"module":       gone(perm, unix.SYS_FINIT_MODULE, ^uintptr(0), at(zeros), 0),
		"kexec":        gone(perm, unix.SYS_KEXEC_LOAD, 0, 17, 0, ^uintptr(0)),
		"reboot":       gone(perm, unix.SYS_REBOOT, 0, 0, 0, 0),
		"swapon":       gone(perm, unix.SYS_SWAPON, at(zeros), 0),
		"acct":         gone(perm, unix.SYS_ACCT, at([]byte("/nonexistent\x00"))),
		"syslog":       gone(perm, unix.SYS_SYSLOG, 10, 0, 0),
		"quotactl":     gone(perm, unix.SYS_QUOTACTL, 0x80000200, 0, 0, 0),
		"fanotify":     gone(perm, unix.SYS_FANOTIFY_INIT, 0, 0),
		"kcmp":         gone(perm, unix.SYS_KCMP, 1, 1, 0, 0, 0),
		"personality":  gone(perm, unix.SYS_PERSONALITY, 0x0400000), // READ_IMPLIES_EXEC
		"move-pages":   gone(perm, unix.SYS_MOVE_PAGES, 0, 0, 0, 0, 0, 0),
		"hostname":     gone(perm, unix.SYS_SETHOSTNAME, at(zeros), 1),
		"settime":      gone(perm, unix.SYS_SETTIMEOFDAY, 0, at(zeros)),
		"pidfd-getfd":  gone(perm, unix.SYS_PIDFD_GETFD, ^uintptr(0), 0, 0),
		"mount-call":   gone(perm, unix.SYS_MOUNT, 0, at(zeros), 0, 0, 0),
		"line-disc":    gone(perm, unix.SYS_IOCTL, 0, unix.TIOCSETD, at(zeros)),
		"clone-user":   gone(perm, unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_THREAD, 0, 0, 0, 0),
		"clone-thread": clone3Fallback,
		"lease":        takeLease,
	}
	for name, ns := range map[string]int{
		"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "net": unix.CLONE_NEWNET, "pid": unix.CLONE_NEWPID,
		"ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP, "time": unix.CLONE_NEWTIME,
	} {
		m["unshare-"+name] = func(map[string]string) outcome {
			runtime.LockOSThread() // this thread is spoilt when it works
			// A user namespace needs a process with one thread; the filter
			// answers first.
			err := unix.Unshare(ns)
			if err == unix.EINVAL {
				return breach("let through to the check for threads")
			}
			return deniedIf(err, "unshared")
		}
	}
	if runtime.GOARCH == "amd64" {
		const x32 = 0x40000000
		m["x32"] = gone(nosys, x32|unix.SYS_GETPID)
		m["x32-ptrace"] = gone(nosys, x32|521, 0)
		m["modify-ldt"] = gone(perm, 154, 0, at(zeros), 16)
		m["iopl"] = gone(perm, 172, 0)
	}
	return m
}

// takeLease tries to hold up those who open a file outside, and to be told when they change a
// directory there.
func takeLease(kv map[string]string) outcome {
	const setDelegation = 1040
	delegation := [8]byte{} // struct delegation: of reads
	for _, c := range []struct {
		name         string
		path         string
		command, arg uintptr
	}{
		{"write lease", "/canary", unix.F_SETLEASE, unix.F_WRLCK},
		{"write lease, other bits above", "/canary", 1<<32 | unix.F_SETLEASE, unix.F_WRLCK},
		{"read lease, other bits above", "/canary", 1<<63 | unix.F_SETLEASE, unix.F_RDLCK},
		{"delegation", "/canary", setDelegation, uintptr(unsafe.Pointer(&delegation))},
		{"delegation of a directory", "", 1<<40 | setDelegation, uintptr(unsafe.Pointer(&delegation))},
		{"notification", "", 1<<35 | unix.F_NOTIFY, 0x4},
	} {
		fd, err := unix.Open(kv["out"]+c.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return bad("%v", err)
		}
		_, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(fd), c.command, c.arg)
		_ = unix.Close(fd)
		if errno != unix.EACCES {
			return breach("%s: errno %d", c.name, int(errno))
		}
	}
	return denied("EACCES")
}

// bpfMap is union bpf_attr for a small array.
func bpfMap() []byte {
	b := make([]byte, 128)
	for i, v := range []byte{2, 4, 4, 1} {
		b[4*i] = v
	}
	return b
}

// clone3Fallback is no attack: programs must go on without clone3.
func clone3Fallback(map[string]string) outcome {
	out, err := exec.Command("/bin/sh", "-c", "echo $(echo works)").Output()
	if err != nil || trimmed(string(out)) != "works" {
		return bad("%q %v", out, err)
	}
	return fine("processes start")
}

// statusField returns a line of /proc/self/status.
func statusField(name string) string {
	b, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "missing"
}

// privilegeAttacks look at what the command is.
func privilegeAttacks() map[string]attack {
	none := func(field string) attack {
		return func(map[string]string) outcome {
			if v := statusField(field); v != "0000000000000000" {
				return breach("%s is %s", field, v)
			}
			return denied("empty")
		}
	}
	is := func(field, want string) attack {
		return func(map[string]string) outcome {
			if v := statusField(field); v != want {
				return breach("%s is %s", field, v)
			}
			return denied(field + " " + want)
		}
	}
	m := map[string]attack{
		"cap-effective": none("CapEff"), "cap-permitted": none("CapPrm"), "cap-inheritable": none("CapInh"),
		"cap-bounding": none("CapBnd"), "cap-ambient": none("CapAmb"),
		"no-new-privs": is("NoNewPrivs", "1"), "filtered": is("Seccomp", "2"),
		"signals-blocked": is("SigBlk", "0000000000000000"), "signals-ignored": is("SigIgn", "0000000000000000"),
		"secure-bits": func(map[string]string) outcome {
			b, err := unix.PrctlRetInt(unix.PR_GET_SECUREBITS, 0, 0, 0, 0)
			if err != nil {
				return bad("%v", err)
			}
			if b != 0xcf {
				return breach("%#x", b)
			}
			return denied("locked")
		},
	}
	m["cap-kept"] = keepCaps
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		m["ns-"+ns] = func(kv map[string]string) outcome {
			have, err := os.Readlink("/proc/self/ns/" + ns)
			if err != nil {
				return bad("%v", err)
			}
			if have == kv["ns-"+ns] {
				return breach("the host's")
			}
			return denied("its own")
		}
	}
	return m
}

// keepCaps asks for its capabilities to be kept over a change of user, which is not locked.
func keepCaps(map[string]string) outcome {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return bad("%v", err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_KEEPCAPS, 0, 0, 0, 0) }() // which is one of the secure bits
	if _, _, errno := unix.RawSyscall(unix.SYS_SETUID, uintptr(unix.Getuid()), 0, 0); errno != 0 {
		return bad("setuid: %v", errno)
	}
	head, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&head, &data[0]); err != nil {
		return bad("%v", err)
	}
	if data != ([2]unix.CapUserData{}) {
		return breach("%+v", data)
	}
	return denied("none kept")
}

// taskAttacks look at what the command was given by its caller.
func taskAttacks() map[string]attack {
	return map[string]attack{
		"core-dump": func(map[string]string) outcome {
			var l unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
				return bad("%v", err)
			}
			if l.Max > 1 { // 1 is the kernel's sign for "not to a handler either"
				return breach("up to %d bytes", l.Max)
			}
			return denied("none")
		},
		"session": func(map[string]string) outcome {
			sid, err := unix.Getsid(0)
			if err != nil {
				return bad("%v", err)
			}
			if sid != os.Getppid() || unix.Getpgrp() != os.Getpid() {
				return breach("session %d, group %d of process %d", sid, unix.Getpgrp(), os.Getpid())
			}
			return denied("a group of its own in the reaper's session")
		},
		"terminal": func(map[string]string) outcome { return openAny(unix.O_RDWR, "/dev/tty") },
		"tiocsti": func(map[string]string) outcome {
			x := []byte("x")
			v := bad("")
			for _, nr := range []uintptr{unix.TIOCSTI, 1<<32 | unix.TIOCSTI, 0x541c} {
				_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, nr, uintptr(unsafe.Pointer(&x[0])))
				if errno != unix.EPERM {
					return breach("ioctl %#x: errno %d", nr, int(errno))
				}
				v = denied(unix.ErrnoName(errno))
			}
			return v
		},
		"descriptors": func(map[string]string) outcome {
			for fd := 3; fd < 4096; fd++ {
				if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
					continue
				}
				to, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
				if !strings.HasPrefix(to, "anon_inode:") { // the Go runtime's own poller
					return breach("%d is %s", fd, to)
				}
			}
			return denied("only the standard ones")
		},
		"environment": func(map[string]string) outcome {
			for _, e := range os.Environ() {
				if strings.Contains(e, "sallyport-secret") {
					return breach("%s", e)
				}
			}
			return denied("only what it was given")
		},
	}
}
