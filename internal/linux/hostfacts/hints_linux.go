// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// NamespaceHint looks at the usual reasons.
func NamespaceHint() string {
	if hint := StrangeHint(OneLine("/proc/version")); hint != "" {
		return hint
	}
	switch {
	case OneLine("/proc/sys/user/max_user_namespaces") == "0":
		return "user.max_user_namespaces is 0 here: as root, sysctl user.max_user_namespaces=10000"
	case OneLine("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "this kernel keeps user namespaces from ordinary users: as root, sysctl kernel.unprivileged_userns_clone=1"
	case OneLine("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor keeps user namespaces from programs without a profile: load a profile for sallyport that allows userns, or as root, sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case SeccompFiltered():
		return FilterHint(Container())
	}
	return SeeDoctor
}

// SeccompFiltered reports whether this process is under a filter itself.
func SeccompFiltered() bool {
	b, err := safefile.ReadSystem("/proc/self/status")
	if err != nil {
		return false
	}
	return strings.Contains(string(b), "\nSeccomp:\t2")
}

// Container names the container around this process, or is empty.
func Container() string {
	for _, f := range []struct{ file, what string }{
		{"/.dockerenv", "a Docker container (/.dockerenv)"},
		{"/run/.containerenv", "a Podman container (/run/.containerenv)"},
		{"/run/systemd/container", "a container (/run/systemd/container)"},
	} {
		if err := unix.Access(f.file, unix.F_OK); err == nil {
			return f.what
		}
	}
	return ""
}

// StrangeKernel recognizes systems that look like Linux and are not, by their
// /proc/version; it is empty for others. gVisor gives the same text on every
// machine (its pkg/sentry/kernel/version.go and fsimpl/proc); WSL 1 is the only
// Microsoft kernel that is not named microsoft-standard.
func StrangeKernel(version string) string {
	v := strings.ToLower(version)
	switch {
	case strings.Contains(v, "sun jan 10 15:06:54 pst 2016"):
		return "gVisor"
	case strings.Contains(v, "microsoft") && !strings.Contains(v, "microsoft-standard"):
		return "WSL 1"
	}
	return ""
}

// StrangeHint is the fix for such a system, or empty.
func StrangeHint(version string) string {
	switch StrangeKernel(version) {
	case "gVisor":
		return "this is gVisor, which has neither Landlock nor all of the mounts: start the container with the runtime runc, or ask for full access and let gVisor be the sandbox"
	case "WSL 1":
		return "this is WSL 1, which is no Linux kernel: convert it, in Windows, with wsl --set-version DISTRIBUTION 2"
	}
	return ""
}

// FilterHint is the fix where a filter around this process refuses namespaces.
func FilterHint(container string) string {
	const rest = "allow user namespaces there, or run sallyport outside of it"
	switch {
	case strings.Contains(container, "Docker"):
		return "Docker's default profile refuses user namespaces (a system call filter) and covers parts of /proc: start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined, or with a profile that allows clone, unshare and mount"
	case strings.Contains(container, "Podman"):
		return "the container's system call filter refuses user namespaces: start it with --security-opt seccomp=unconfined --security-opt unmask=ALL, or with a profile that allows clone, unshare and mount"
	}
	return "a system call filter is around this process, as in a container or another sandbox: " + rest
}

// landlockMissing says what is wrong with Landlock here: the kernel, its list of
// modules, or a filter.
func landlockMissing(abi int, modules string, filtered bool) (have, hint string) {
	hint = "use Linux 5.19 or newer with landlock in the kernel's lsm= list"
	switch {
	case abi > 0:
		return fmt.Sprintf("this kernel has version %d", abi), hint
	case modules != "" && !strings.Contains(","+modules+",", ",landlock,"):
		return "it is switched off: the kernel's security modules are " + modules, "boot with lsm=landlock," +
			modules + " on the kernel's command line"
	case filtered:
		return "the kernel offers none, or the system call filter around this process hides it",
			"allow the landlock system calls in that filter; " + hint
	}
	return "this kernel has none", hint
}

// coveredProc lists what is mounted over parts of /proc, from the text of
// mountinfo (proc(5)). The kernel refuses a fresh /proc because of it.
func coveredProc(mountinfo string) []string {
	var out []string
	for _, m := range ParseMounts(mountinfo) {
		if strings.HasPrefix(m.Point, "/proc/") && !strings.HasPrefix(m.Point, "/proc/sys/fs/binfmt_misc") {
			out = append(out, m.Point)
		}
	}
	return out
}

// ProcHave says why a fresh /proc is refused.
func ProcHave() string {
	const have = "the kernel refuses one because parts of the outer /proc are covered, as they are in containers"
	b, err := safefile.ReadSystem("/proc/self/mountinfo")
	if covered := coveredProc(string(b)); err == nil && len(covered) > 0 {
		return have + " (" + strings.Join(covered, ", ") + ")"
	}
	return have
}

// SystemRoot reports whether this process is root in the first user namespace.
func SystemRoot() bool { return unix.Geteuid() == 0 && firstUsers() }

// firstUsers reports whether this process is in the first user namespace. It looks once.
var firstUsers = sync.OnceValue(func() bool {
	f := strings.Fields(OneLine("/proc/self/uid_map"))
	return len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] == "4294967295"
})

// ownCaps are the effective capabilities of this thread; none when they cannot
// be read.
func ownCaps() uint64 {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return 0
	}
	return uint64(data[0].Effective) | uint64(data[1].Effective)<<32
}
