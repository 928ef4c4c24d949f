// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// What of the system's own directories a command gets to see. The lists are data
// for plans; what does not exist here is left out.
var (
	// devices are those that bubblewrap, Docker and systemd agree on.
	devices = [...]string{"null", "zero", "full", "random", "urandom", "tty"}

	// procCovers can change the host when the caller is the real root: the
	// kernel checks the user id there, not capabilities.
	procCovers = [...]string{
		"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "asound", "dynamic_debug",
	}
	// procMasks tell of the host's memory, keys and timers.
	procMasks = [...]string{"kcore", "keys", "kallsyms", "timer_list", "latency_stats", "sched_debug"}

	// sysShows is what programs ask to learn how many processors there are.
	sysShows = [...]string{"/sys/devices/system"}

	// RunShows is where NixOS keeps every program.
	RunShows = [...]string{"/run/current-system"}
)

// Unconfined is what a plan for full access needs, which builds no sandbox: none can be planned with it.
func Unconfined() *plan.Host {
	return &plan.Host{System: runtime.GOOS, Arch: runtime.GOARCH, Missing: []plan.Missing{{
		Need: "a sandbox", Have: "this machine was not looked at",
		Hint: "report this as a defect of sallyport",
	}}}
}

// Gather looks at the host. It starts nothing: what only a try can tell,
// such as whether user namespaces are allowed, the first launch tells.
func Gather() *plan.Host {
	h := &plan.Host{
		System: runtime.GOOS, Arch: runtime.GOARCH,
		UID: os.Geteuid(), GID: os.Getegid(),
		LandlockABI: landlockABI(), LastCap: lastCap(), Caps: ownCaps(),
	}
	groups := OneLine("/proc/self/cgroup") // of version 2 there is one hierarchy, number 0
	h.GroupsV1 = groups != "" && !strings.HasPrefix(groups, "0:")
	for _, name := range []string{"max_inotify_instances", "max_inotify_watches"} {
		if n, err := strconv.Atoi(OneLine("/proc/sys/user/" + name)); err == nil {
			if h.Watch == nil {
				h.Watch = make(map[string]int)
			}
			h.Watch[name] = n
		}
	}
	for _, d := range devices {
		var st unix.Stat_t
		if unix.Lstat("/dev/"+d, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR {
			h.Devices = append(h.Devices, d)
		}
	}
	exists := func(name string) bool {
		var st unix.Stat_t
		return unix.Lstat(name, &st) == nil
	}
	for _, p := range procCovers {
		if exists("/proc/" + p) {
			h.ProcCovers = append(h.ProcCovers, p)
		}
	}
	for _, p := range procMasks {
		if exists("/proc/" + p) {
			h.ProcMasks = append(h.ProcMasks, p)
		}
	}
	h.SysShows = spots(sysShows[:])
	h.RunShows = spots(RunShows[:])
	h.Missing = missing(h)
	return h
}

func spots(names []string) []plan.Spot {
	var out []plan.Spot
	for _, n := range names {
		if s, err := Look(n); err == nil && (s.Kind == plan.KindDirectory || s.Kind == plan.KindFile) {
			out = append(out, s)
		}
	}
	return out
}

// missing lists what can be told without a try.
func missing(h *plan.Host) []plan.Missing {
	var out []plan.Missing
	if h.Arch != "amd64" && h.Arch != "arm64" {
		out = append(out, plan.Missing{
			Need: "the native launcher", Have: "it knows amd64 and arm64, and this is " + h.Arch,
			Hint: "run it with full access inside another sandbox",
		})
	}
	if abi := launch.LandlockABI(h.LandlockABI); abi < launch.LandlockLeastUseful {
		have, hint := landlockMissing(h.LandlockABI, OneLine("/sys/kernel/security/lsm"), SeccompFiltered())
		if strange := StrangeHint(OneLine("/proc/version")); strange != "" {
			hint = strange
		}
		out = append(out, plan.Missing{Need: "Landlock, version 2 or newer", Have: have, Hint: hint})
	}
	return out
}

// landlockABI asks the kernel for its version of Landlock; 0 means none.
func landlockABI() int {
	const createRulesetVersion = 1 // LANDLOCK_CREATE_RULESET_VERSION
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, createRulesetVersion)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// lastCap is the highest capability that the kernel knows. A number that is
// too high is refused by the kernel, one that is too low would leave rights,
// so it is asked for and not assumed.
func lastCap() uint64 {
	known, unknown := uint64(0), uint64(64)
	const usual = unix.CAP_LAST_CAP // most kernels know this one and no higher one
	for c := uint64(usual); unknown-known > 1; c = max((known+min(unknown, usual))/2, known+1) {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0); err != nil {
			unknown = c
		} else {
			known = c
		}
	}
	return known
}

// OneLine reads a short file of the kernel's; empty when it cannot be read.
func OneLine(name string) string {
	b, err := safefile.ReadSystem(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
