// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/plan"
)

// Levels runs a command at every level, each by itself, and says which of them
// can be had on this machine and what they hold. It starts short-lived processes
// and leaves nothing behind. When ctx ends, the levels that are left are reported
// as not tried. It blocks for some ten milliseconds.
func (*Host) Levels(ctx context.Context) []LevelCheck {
	d := new(doctor)
	_, blind := d.observer(ctx)
	_ = d.host.Close() // as below
	var out []LevelCheck
	for _, level := range []string{plan.LevelNative, plan.LevelBwrap, plan.LevelLandlock} {
		host := &Host{Only: level}
		c := LevelCheck{Level: level}
		facts := *host.Facts()
		facts.Blind = blind != nil
		c.Holds, c.Lacks, c.Refuses = plan.Standing(&facts, level)
		if ctx.Err() != nil {
			c.Why = "not tried: " + context.Cause(ctx).Error()
		} else if _, err := wholeSandbox(ctx, host); err != nil {
			c.Why, c.Fix = cause(err)
		} else {
			c.Available = true
		}
		// What Close would report, a private folder that stays, is swept later.
		_ = host.Close()
		out = append(out, c)
	}
	return out
}

// container names the container around this process, or is empty.
func container() string {
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

// strangeKernel recognizes systems that look like Linux and are not, by their
// /proc/version; it is empty for others. gVisor gives the same text on every
// machine (its pkg/sentry/kernel/version.go and fsimpl/proc); WSL 1 is the only
// Microsoft kernel that is not named microsoft-standard.
func strangeKernel(version string) string {
	v := strings.ToLower(version)
	switch {
	case strings.Contains(v, "sun jan 10 15:06:54 pst 2016"):
		return "gVisor"
	case strings.Contains(v, "microsoft") && !strings.Contains(v, "microsoft-standard"):
		return "WSL 1"
	}
	return ""
}

// strangeHint is the mend for such a system, or empty.
func strangeHint(version string) string {
	switch strangeKernel(version) {
	case "gVisor":
		return "this is gVisor, which has neither Landlock nor all of the mounts: start the container with the runtime runc, or ask for full access and let gVisor be the sandbox"
	case "WSL 1":
		return "this is WSL 1, which is no Linux kernel: convert it, in Windows, with wsl --set-version DISTRIBUTION 2"
	}
	return ""
}

// filterHint is the mend where a filter around this process refuses namespaces.
func filterHint(container string) string {
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
		return "it is switched off: the kernel's security modules are " + modules, "boot with lsm=landlock," + modules + " on the kernel's command line"
	case filtered:
		return "the kernel offers none, or the system call filter around this process hides it", "allow the landlock system calls in that filter; " + hint
	}
	return "this kernel has none", hint
}

// coveredProc lists what is mounted over parts of /proc, from the text of
// mountinfo (proc(5)). The kernel refuses a fresh /proc because of it.
func coveredProc(mountinfo string) []string {
	var out []string
	for line := range strings.Lines(mountinfo) {
		const pointField = 4
		f := strings.Fields(line)
		if len(f) > pointField && strings.HasPrefix(f[pointField], "/proc/") && !strings.HasPrefix(f[pointField], "/proc/sys/fs/binfmt_misc") {
			out = append(out, f[pointField])
		}
	}
	return out
}

// procHave says why a fresh /proc is refused.
func procHave() string {
	const have = "the kernel refuses one because parts of the outer /proc are covered, as they are in containers"
	b, err := os.ReadFile("/proc/self/mountinfo")
	if covered := coveredProc(string(b)); err == nil && len(covered) > 0 {
		return have + " (" + strings.Join(covered, ", ") + ")"
	}
	return have
}
