// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// told are the probes that the default sandbox does not depend on. Two of them
// ask the kernel instead of trying, and say so: a listener for system calls
// cannot be installed in a probe without a supervisor, and an overlay cannot be
// mounted by this package.
func (d *doctor) told() []probe {
	return []probe{
		{"seccomp notification", false, seccompNotification},
		{"overlay", false, overlay},
		{"cgroups", false, d.cgroups},
		{"bwrap", false, d.bwrap},
		{"surroundings", false, surroundings},
	}
}

// seccompNotification asks whether the kernel has the action and how large its
// records are (seccomp(2)); neither question changes anything.
func seccompNotification(context.Context) (string, error) {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); errno != 0 {
		return "", &lackError{fmt.Sprintf("the kernel does not offer it (%v)", errno), "use Linux 5.0 or newer, outside of a container that filters it"}
	}
	var sizes [3]uint16 // struct seccomp_notif_sizes
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes))); errno != 0 {
		return "", &lackError{fmt.Sprintf("the kernel does not tell the size of its records (%v)", errno), "use Linux 5.0 or newer"}
	}
	return "offered by the kernel", nil
}

// overlay reads whether the file system is there and the kernel new enough to
// let a user namespace mount it.
func overlay(context.Context) (string, error) {
	b, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return "", &lackError{"not known: " + err.Error(), ""}
	}
	if !slices.Contains(strings.Fields(string(b)), "overlay") {
		return "", &lackError{"the kernel does not list it", "as root, modprobe overlay"}
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", &lackError{"not known: " + err.Error(), ""}
	}
	release := unix.ByteSliceToString(u.Release[:])
	if !atLeast(release, 5, 11) {
		return "", &lackError{"Linux " + release + " keeps it from user namespaces", "use Linux 5.11 or newer"}
	}
	return "listed by the kernel, Linux " + release, nil
}

// atLeast compares the first two numbers of a kernel's release.
func atLeast(release string, major, minor int) bool {
	a, rest, _ := strings.Cut(release, ".")
	b, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(a)
	if err != nil {
		return false
	}
	if i := strings.IndexFunc(b, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		b = b[:i] // such as "11-rc1"
	}
	n, err := strconv.Atoi(b)
	return m > major || m == major && err == nil && n >= minor
}

// bwrap tries the system's bubblewrap with every option that it would be used with.
func (d *doctor) bwrap(context.Context) (string, error) {
	b := d.host.systemBwrap()
	if b.lack != nil {
		return "", &lackError{b.lack.Have, b.lack.Hint + " (it is only of use where this program may not make user namespaces itself)"}
	}
	detail := fmt.Sprintf("%s, version %d.%d", b.program, b.version[0], b.version[1])
	if b.setuid {
		detail += ", set-uid"
	}
	return detail, nil
}

// surroundings looks for walls that stand around this process already.
func surroundings(context.Context) (string, error) {
	var found []string
	if seccompFiltered() {
		found = append(found, "a system call filter")
	}
	if c := container(); c != "" {
		found = append(found, c)
	}
	if k := strangeKernel(oneLine("/proc/version")); k != "" {
		found = append(found, k)
	}
	// The first user namespace maps all ids to themselves.
	if m := strings.Fields(oneLine("/proc/self/uid_map")); len(m) > 0 && !slices.Equal(m, []string{"0", "0", "4294967295"}) {
		found = append(found, "a user namespace")
	}
	if v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && v == 1 {
		found = append(found, "no_new_privs")
	}
	if len(found) > 0 {
		return "this process already runs inside " + strings.Join(found, ", ") + "; when a part above is missing, try it outside", nil
	}
	return "no filter and no container around this process", nil
}
