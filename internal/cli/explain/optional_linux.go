// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/observer"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// The probes in this file are about what the default sandbox does not depend on.

// observer has a task ask for something that does not exist, and a supervisor answer.
func (d *doctor) observer(context.Context) (string, error) {
	filter, err := d.filter(true)
	if err != nil {
		return "", err
	}
	inbox, err := notify.Listen()
	if err != nil {
		return "", err
	}
	defer inbox.Started()
	supervisor, err := observer.Serve(inbox, observer.Config{})
	if err != nil {
		return "", err
	}
	step, err := d.launch(0, nil, []launch.Step{
		{Op: launch.OpNoNewPrivs},
		{Op: launch.OpObserve, Filter: filter, Value: seccomp.HandOver},
		{Op: launch.OpChmod, Path: "/proc/no such file"},
	}, launch.Files{Observer: inbox.Theirs()})
	inbox.Started()
	report := supervisor.Close()
	switch {
	case err != nil:
		return "", err
	case step.Step.Op == launch.OpObserve && step.Errno == unix.EBUSY:
		return "", missing("another supervisor gets the calls of this process already",
			"run sallyport outside of it; without an observer, unix sockets are denied and denials are not reported")
	case step.Step.Op == launch.OpObserve:
		return "", missing(fmt.Sprintf("the kernel gave no listener (%v)", step.Errno),
			"use Linux 5.19 or newer, outside of a container that filters seccomp")
	case step.Step.Op != launch.OpChmod || step.Errno != unix.ENOENT:
		return "", missing(fmt.Sprintf("not tried: %v", step), "")
	case report.Calls == 0 || report.Err != nil:
		return "", missing(fmt.Sprintf("a call was not reported (%v)", report.Err), "use another kernel")
	}
	return "a system call was reported and answered", nil
}

// proxy has the socket made that leads a command with a managed network to the proxy, in a network
// of its own, and looks at what was passed.
func (d *doctor) proxy(context.Context) (string, error) {
	return d.listens(plan.ProxyAddress)
}

// routes has one made that gets connections to every address, by a route. It is for machines without
// redirect.
func (d *doctor) routes(context.Context) (string, error) {
	const https = 443
	return d.listens(netip.AddrPortFrom(netip.IPv4Unspecified(), https),
		launch.Step{Op: launch.OpNetlink, Value: unix.NETLINK_ROUTE, Data: tasks.Routes(unix.AF_INET)})
}

// listens has a socket made behind some steps, in a network of its own.
func (d *doctor) listens(at netip.AddrPort, steps ...launch.Step) (string, error) {
	sent, err := launch.NewHandover("proxy")
	if err != nil {
		return "", err
	}
	defer sent.Close()
	step, err := d.inNetwork(sent.Theirs(),
		append(steps, launch.Step{Op: launch.OpListen, Path: at.String()})...)
	switch {
	case err != nil:
		return "", err
	case step.Step.Op != launch.OpExec:
		return "", explainProbe(step)
	}
	f, err := sent.Take()
	if err != nil {
		return "", err
	}
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	if l.Addr().String() != at.String() {
		return "", missing("the socket listens at "+l.Addr().String(), "use another kernel")
	}
	return "received a socket at " + l.Addr().String() + " from another network namespace", nil
}

// inNetwork performs steps in a network of its own, and returns the step that failed: OpExec, which has
// no program, if none did before.
func (d *doctor) inNetwork(listen *os.File, steps ...launch.Step) (*launch.StepError, error) {
	steps = append([]launch.Step{{Op: launch.OpLoopback}}, steps...)
	return d.launch(launch.NewUser|launch.NewNet, steps, nil, launch.Files{Listen: listen})
}

// redirect has the kernel lead connections of a network of its own away.
func (d *doctor) redirect(context.Context) (string, error) {
	step, err := d.inNetwork(nil,
		launch.Step{Op: launch.OpNetlink, Value: unix.NETLINK_ROUTE, Data: tasks.Routes(unix.AF_INET)},
		launch.Step{Op: launch.OpNetlink, Value: unix.NETLINK_NETFILTER,
			Data: tasks.Rules(tasks.Redirection{TCP: plan.RedirectPort, DNS: plan.NamesPort})})
	switch {
	case err != nil:
		return "", err
	case step.Step.Op == launch.OpNetlink:
		return "", missing(fmt.Sprintf("the kernel did not take its rules (%s: %v); with a managed network programs that do not use the proxy reach hosts at a few ports only, if routes are available", step.Call, step.Errno), "as root, modprobe nf_tables nft_redir nft_reject_inet")
	case step.Step.Op != launch.OpExec:
		return "", explainProbe(step)
	}
	return "connections in a network namespace are redirected to the proxy", nil
}

// overlay reads whether the kernel has the file system and is new enough to let a user
// namespace mount it. It is not tried, because that needs directories.
func overlay(context.Context) (string, error) {
	kinds, err := os.ReadFile("/proc/filesystems")
	var u unix.Utsname
	if err == nil {
		err = unix.Uname(&u)
	}
	if err != nil {
		return "", missing("not known: "+err.Error(), "")
	}
	if !slices.Contains(strings.Fields(string(kinds)), "overlay") {
		return "", missing("the kernel does not list it", "as root, modprobe overlay")
	}
	release := unix.ByteSliceToString(u.Release[:])
	if !atLeast(release, 5, 11) {
		return "", missing("Linux "+release+" does not allow it in user namespaces",
			"use Linux 5.11 or newer")
	}
	return "listed by the kernel, Linux " + release, nil
}

// atLeast compares the first two numbers of a kernel's release.
func atLeast(release string, major, minor int) bool {
	var m, n int
	_, err := fmt.Sscanf(release, "%d.%d", &m, &n)
	return err == nil && (m > major || m == major && n >= minor)
}

// cgroups makes a group with all limits that groups can enforce here, and removes it.
// Limits without a group are enforced by other means, which it names.
func (d *doctor) cgroups(context.Context) (string, error) {
	if err := d.groups.Check(); err != nil {
		return "", missing(err.Error()+"; limits: "+d.groups.Describe(),
			"run as root, or in a group of its own (systemd-run --user --scope -p Delegate=yes)")
	}
	return fmt.Sprintf("created in %s; limits: %s", strings.Join(d.groups.Where(), ", "),
		d.groups.Describe()), nil
}

// findBwrap tries the system's bubblewrap with every option that it would be used with.
func findBwrap(context.Context) (string, error) {
	p, lack := linux.FindBubblewrap()
	if lack != nil {
		return "", missing(lack.Have, lack.Hint+
			" (only needed where sallyport itself may not create user namespaces)")
	}
	detail := fmt.Sprintf("%s, version %d.%d", p.Path, p.Major, p.Minor)
	if p.SetUID {
		detail += ", set-uid"
	}
	return detail, nil
}

// surroundings looks for sandboxes and containers around this process.
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
	if m := strings.Fields(hostfacts.OneLine("/proc/self/uid_map")); len(m) > 0 &&
		!slices.Equal(m, []string{"0", "0", "4294967295"}) {
		found = append(found, "a user namespace")
	}
	if v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && v == 1 {
		found = append(found, "no_new_privs")
	}
	if len(found) > 0 {
		return "this process runs inside " + strings.Join(found, ", ") +
			"; if a part is missing, try outside", nil
	}
	return "no filter and no container around this process", nil
}
