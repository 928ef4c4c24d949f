// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// systemAttacks are those on /proc, /sys, /dev and /run.
func systemAttacks() map[string]attack {
	return map[string]attack{
		"proc-sys": func(map[string]string) outcome {
			return openAny(unix.O_WRONLY, "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
				"/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/ns_last_pid",
				"/proc/sys/kernel/core_uses_pid")
		},
		"sysrq":    func(map[string]string) outcome { return openAny(unix.O_WRONLY, "/proc/sysrq-trigger") },
		"proc-irq": func(map[string]string) outcome { return openAny(unix.O_WRONLY, "/proc/irq/default_smp_affinity") },
		"proc-secrets": func(map[string]string) outcome {
			return openAny(unix.O_RDONLY, "/proc/kcore", "/proc/keys", "/proc/kallsyms", "/proc/timer_list", "/proc/kmsg")
		},
		"proc-1": func(map[string]string) outcome {
			return openAny(unix.O_RDONLY, "/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/root/etc", "/proc/1/cwd/etc", "/proc/1/fd/0", "/proc/1/exe", "/proc/1/auxv")
		},
		"proc-unmask": func(map[string]string) outcome {
			return firstBreach(
				func() (string, error) { return "removed a cover", os.Remove("/proc/sys") },
				func() (string, error) { return "changed a mode", unix.Chmod("/proc/sys/kernel/core_pattern", 0o666) },
				func() (string, error) { return "changed a mask", unix.Chmod("/proc/kcore", 0o666) })
		},
		"sys-write": func(map[string]string) outcome {
			return openAny(unix.O_WRONLY, "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled",
				"/sys/module/kernel/parameters/panic", "/sys/devices/system/cpu/cpu1/online", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/pids/cgroup.procs")
		},
		"sys-kernel": func(map[string]string) outcome {
			return openAny(unix.O_RDONLY, "/sys/kernel", "/sys/firmware", "/sys/module")
		},
		"cgroup-make": cgroupMake,
		"devices": func(map[string]string) outcome {
			return openAny(unix.O_RDONLY, "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/mem", "/dev/kmsg", "/dev/loop-control", "/dev/fuse",
				"/dev/kvm", "/dev/net/tun", "/dev/vhost-net", "/dev/vsock", "/dev/snapshot", "/dev/console", "/dev/mapper/control")
		},
		"dev-list": func(map[string]string) outcome {
			known := strings.Fields("null zero full random urandom tty pts ptmx shm fd stdin stdout stderr")
			entries, err := os.ReadDir("/dev")
			if err != nil {
				return bad("%v", err)
			}
			for _, e := range entries {
				if !slices.Contains(known, e.Name()) {
					return breach("/dev/%s is there", e.Name())
				}
			}
			return denied("nothing else")
		},
		"dev-change": func(map[string]string) outcome {
			// To what they are already: some levels let it through, and the host
			// needs its devices.
			var null unix.Stat_t
			if err := unix.Stat("/dev/null", &null); err != nil {
				return bad("%v", err)
			}
			return firstBreach(
				func() (string, error) { return "chmod of a device", unix.Chmod("/dev/null", null.Mode&0o7777) },
				func() (string, error) { return "chown of a device", unix.Chown("/dev/zero", os.Getuid(), os.Getgid()) },
				func() (string, error) { return "removed a device", os.Remove("/dev/null") },
				func() (string, error) { return "made a file in /dev", put("/dev/evil", os.O_CREATE) })
		},
		"run-list": func(kv map[string]string) outcome {
			known := strings.Fields(kv["known"])
			entries, err := os.ReadDir("/run")
			if err != nil {
				return bad("%v", err)
			}
			for _, e := range entries {
				if !slices.Contains(known, e.Name()) {
					return breach("/run/%s is there", e.Name())
				}
			}
			return deniedIf(put("/run/evil", os.O_CREATE), "created in /run")
		},
		"devices-work": devicesWork,
	}
}

// cgroupMake makes a control group and removes it again.
func cgroupMake(map[string]string) outcome {
	v := bad("")
	for _, d := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"} {
		name := fmt.Sprintf("%s/sallyport-test-%d", d, os.Getpid())
		err := unix.Mkdir(name, 0o755)
		if err == nil {
			_ = unix.Rmdir(name)
		}
		if v = deniedIf(err, "made "+name); v.word == wordBreach {
			return v
		}
	}
	return v
}

// devicesWork is no attack: ordinary devices and a terminal must be there.
func devicesWork(map[string]string) outcome {
	for _, d := range []string{"/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"} {
		f, err := os.Open(d)
		if err != nil {
			return bad("%v", err)
		}
		if _, err := f.Read(make([]byte, 8)); err != nil {
			return bad("%v", err)
		}
		f.Close()
	}
	if err := put("/dev/null", 0); err != nil {
		return bad("%v", err)
	}
	if err := put("/dev/shm/x", os.O_CREATE); err != nil {
		return bad("%v", err)
	}
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return bad("ptmx: %v", err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return bad("unlock: %v", err)
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return bad("number: %v", err)
	}
	if _, err := unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return bad("slave: %v", err)
	}
	return fine("devices and a terminal")
}

// processAttacks reach for other processes. "pid" is one outside.
func processAttacks() map[string]attack {
	return map[string]attack{
		"kill": func(kv map[string]string) outcome { return deniedIf(unix.Kill(number(kv["pid"]), 0), "signaled") },
		"see-process": func(kv map[string]string) outcome {
			_, err := os.Lstat("/proc/" + kv["pid"])
			return deniedIf(err, "saw the process")
		},
		"list-processes": func(map[string]string) outcome {
			entries, err := os.ReadDir("/proc")
			if err != nil {
				return bad("%v", err)
			}
			for _, e := range entries {
				if n, err := strconv.Atoi(e.Name()); err == nil && n != 1 && n != os.Getpid() {
					return breach("process %d", n)
				}
			}
			return denied("only process 1 and this one")
		},
		"ptrace": func(kv map[string]string) outcome { return deniedIf(unix.PtraceSeize(number(kv["pid"])), "attached") },
		"read-memory": func(kv map[string]string) outcome {
			return deniedIf(peek(number(kv["pid"])), "read its memory")
		},
		"priority": func(kv map[string]string) outcome {
			return deniedIf(unix.Setpriority(unix.PRIO_PROCESS, number(kv["pid"]), 19), "changed its priority")
		},
		"affinity": func(kv map[string]string) outcome {
			var set unix.CPUSet
			set.Set(0)
			return deniedIf(unix.SchedSetaffinity(number(kv["pid"]), &set), "changed its affinity")
		},
		"limits": func(kv map[string]string) outcome {
			return deniedIf(unix.Prlimit(number(kv["pid"]), unix.RLIMIT_CORE, &unix.Rlimit{}, nil), "changed its limits")
		},
		"pidfd": func(kv map[string]string) outcome {
			_, err := unix.PidfdOpen(number(kv["pid"]), 0)
			return deniedIf(err, "a handle on it")
		},
		"setns": func(kv map[string]string) outcome {
			v := bad("")
			for _, n := range []string{"mnt", "net", "user", "pid", "ipc"} {
				fd, err := unix.Open("/proc/"+kv["pid"]+"/ns/"+n, unix.O_RDONLY, 0)
				if err == nil {
					err = unix.Setns(fd, 0)
				}
				if v = deniedIf(err, "joined "+n); v.word == wordBreach {
					return v
				}
			}
			return v
		},
		"setns-1": func(map[string]string) outcome {
			fd, err := unix.Open("/proc/1/ns/user", unix.O_RDONLY, 0)
			if err == nil {
				err = unix.Setns(fd, 0)
			}
			return deniedIf(err, "joined process 1")
		},
		"ptrace-1":      func(map[string]string) outcome { return deniedIf(unix.PtraceSeize(1), "attached to process 1") },
		"read-memory-1": func(map[string]string) outcome { return deniedIf(peek(1), "read the memory of process 1") },
		// Nothing is mapped at the address: whoever is let in learns that.
		"write-memory-1": func(map[string]string) outcome {
			b := []byte{0}
			_, err := unix.ProcessVMWritev(1, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: 8, Len: 1}}, 0)
			if err == nil || err == unix.EFAULT {
				return breach("let in")
			}
			return denied(errnoName(err))
		},
		"descriptor-1": func(map[string]string) outcome {
			fd, err := unix.PidfdOpen(1, 0)
			if err == nil {
				_, err = unix.PidfdGetfd(fd, 0, 0)
			}
			return deniedIf(err, "took a descriptor of process 1")
		},
		"memory-race": memoryRace,
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// peek reads a byte where the image of process 1 and most programs begin, or
// opens the memory.
func peek(pid int) error {
	b := make([]byte, 1)
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	remote := []unix.RemoteIovec{{Base: 0x400000, Len: 1}}
	if _, err := unix.ProcessVMReadv(pid, local, remote, 0); err == nil {
		return nil
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/mem", unix.O_RDWR, 0)
	unix.Close(fd)
	return err
}

// memoryRace spins on process 1 from several threads.
func memoryRace(map[string]string) outcome {
	var mu sync.Mutex
	result := denied("never")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			runtime.LockOSThread()
			for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
				if peek(1) == nil || unix.PtraceSeize(1) == nil {
					mu.Lock()
					result = breach("reached process 1")
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return result
}
