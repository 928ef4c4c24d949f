// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/bwrap"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/observer"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
)

// told are the probes that the default sandbox does not depend on. One of them asks
// the kernel instead of trying, and says so: an overlay cannot be mounted by this
// package.
func (d *doctor) told() []probe {
	return []probe{
		{"observer", false, d.observer},
		{"overlay", false, overlay},
		{"cgroups", false, d.cgroups},
		{"bwrap", false, findBwrap},
		{"surroundings", false, surroundings},
	}
}

// observer has a task ask for something that does not exist, and a supervisor answer.
func (d *doctor) observer(context.Context) (string, error) {
	filter, err := filter(d.host.Facts().Arch, true)
	if err != nil {
		return "", &lackError{err.Error(), "use amd64 or arm64"}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return "", err
	}
	defer null.Close()
	inbox, err := observer.Listen()
	if err != nil {
		return "", err
	}
	defer inbox.Started()
	supervisor, err := inbox.Serve(observer.Config{})
	if err != nil {
		return "", err
	}
	_, err = d.launcher.Start(nil, &launch.Script{Steps: []launch.Step{
		{Op: launch.OpStartCommand},
		{Op: launch.OpNoNewPrivs},
		{Op: launch.OpObserve, Filter: filter, Value: seccomp.HandOver},
		{Op: launch.OpChmod, Path: "/proc/no such file"},
		{Op: launch.OpExec},
	}}, launch.Files{Stdin: null, Stdout: null, Stderr: null, Observer: inbox.Theirs()})
	inbox.Started()
	report := supervisor.Close()
	step := stepOf(err)
	switch {
	case step != nil && step.Step.Op == launch.OpObserve && step.Errno == unix.EBUSY:
		return "", &lackError{"another supervisor around this process gets its calls already", "run sallyport outside of it; without an observer unix sockets are refused, and what a command is kept from is not known"}
	case step != nil && step.Step.Op == launch.OpObserve:
		return "", &lackError{fmt.Sprintf("the kernel gave no listener (%v)", step.Errno), "use Linux 5.19 or newer, outside of a container that filters seccomp"}
	case step == nil || step.Step.Op != launch.OpChmod || step.Errno != unix.ENOENT:
		return "", &lackError{fmt.Sprintf("nothing could be tried: %v", err), ""}
	case report.Calls == 0 || report.Err != nil:
		return "", &lackError{fmt.Sprintf("a call was let through without being shown (%v)", report.Err), "use another kernel"}
	}
	return "a system call was seen and answered", nil
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
func findBwrap(context.Context) (string, error) {
	p, lack := bwrap.Find()
	if lack != nil {
		return "", &lackError{lack.Have, lack.Hint + " (it is only of use where this program may not make user namespaces itself)"}
	}
	detail := fmt.Sprintf("%s, version %d.%d", p.Path, p.Major, p.Minor)
	if p.SetUID {
		detail += ", set-uid"
	}
	return detail, nil
}

// surroundings looks for walls that stand around this process already.
func surroundings(context.Context) (string, error) {
	var found []string
	if hostfacts.SeccompFiltered() {
		found = append(found, "a system call filter")
	}
	if c := hostfacts.Container(); c != "" {
		found = append(found, c)
	}
	if k := hostfacts.StrangeKernel(hostfacts.OneLine("/proc/version")); k != "" {
		found = append(found, k)
	}
	// The first user namespace maps all ids to themselves.
	if m := strings.Fields(hostfacts.OneLine("/proc/self/uid_map")); len(m) > 0 && !slices.Equal(m, []string{"0", "0", "4294967295"}) {
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
