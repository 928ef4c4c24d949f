// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"slices"
	"strings"
)

// Opening is one part of the deny list that can be opened by name.
type Opening struct {
	// Name is what people type.
	Name string
	// Opens says in one line what becomes possible, with the price.
	Opens string
	// Syscalls are the calls, on any architecture, for which the filter gives
	// other answers with the opening than without.
	Syscalls []string
}

// The names of the openings.
const (
	openBPF         = "bpf"
	openICMP        = "icmp"
	openIOUring     = "io_uring"
	openKeyring     = "keyring"
	openNetlink     = "netlink"
	openNUMA        = "numa"
	openPerf        = "perf"
	openPtrace      = "ptrace"
	openSetuid      = "setuid"
	openUnix        = "unix"
	openUserfaultfd = "userfaultfd"
	openUserns      = "userns"
)

// Openings returns all openings, sorted by name. The caller owns the slices.
func Openings() []Opening {
	return []Opening{
		{openBPF, "load eBPF programs and maps, as far as the kernel lets an ordinary user",
			[]string{"bpf"}},
		{openICMP, "ping sockets (ICMP echo); always open when the command uses the host's network",
			[]string{"socket"}},
		{openIOUring, "io_uring; its requests pass by this filter and by the observer, so neither judges nor reports them",
			[]string{"io_uring_setup", "io_uring_enter", "io_uring_register"}},
		{openKeyring, "kernel keyrings, with the keys that the user keeps in them (Kerberos, fscrypt)",
			[]string{"add_key", "request_key", "keyctl"}},
		{openNetlink, "all netlink protocols, not just the list of interfaces and routes",
			[]string{"socket"}},
		{openNUMA, "move the memory of processes between NUMA nodes",
			[]string{"move_pages", "migrate_pages"}},
		{openPerf, "performance counters and tracing (perf), as far as the kernel lets an ordinary user",
			[]string{"perf_event_open"}},
		{openPtrace, "trace processes and read or write their memory, as far as they are visible to the command",
			[]string{"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"}},
		{openSetuid, "set-uid and set-gid bits on files and folders; run by root, a command can leave a program that makes others root",
			[]string{"chmod", "fchmod", "fchmodat", "fchmodat2", "open", "openat", "creat", "mknod", "mknodat"}},
		{openUnix, "unix sockets by path and name, so also local services that the command can see (dbus, docker, ssh-agent)",
			[]string{"socket", "socketpair"}},
		{openUserfaultfd, "handle page faults in the program (userfaultfd)",
			[]string{"userfaultfd"}},
		{openUserns, "new user and other namespaces (browsers); mounts in them stay refused; much more of the kernel can be attacked",
			[]string{
				"clone", "clone3", "unshare", "setns", "mount", "umount2", "pivot_root", "chroot",
				"open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
				"sethostname", "setdomainname",
			}},
	}
}

// UnknownOpeningError says that an opening was asked for that does not exist.
type UnknownOpeningError struct {
	// Names are the unknown names, in the order given.
	Names []string
	// Known are all names that exist, sorted.
	Known []string
}

// Error returns one sentence with the names that exist.
func (e *UnknownOpeningError) Error() string {
	return fmt.Sprintf("seccomp: nothing named %s can be allowed, choose from %s",
		strings.Join(quoted(e.Names), ", "), strings.Join(e.Known, ", "))
}

// quoted returns the names in quotes.
func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return out
}

// opened turns names into a set, or says which of them do not exist.
func opened(names []string) (map[string]bool, error) {
	var all []string
	for _, o := range Openings() {
		all = append(all, o.Name)
	}
	open := make(map[string]bool, len(names))
	var unknown []string
	for _, n := range names {
		if !slices.Contains(all, n) {
			unknown = append(unknown, n)
		}
		open[n] = true
	}
	if len(unknown) > 0 {
		return nil, &UnknownOpeningError{Names: unknown, Known: all}
	}
	return open, nil
}
