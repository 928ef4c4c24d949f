// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"slices"
	"strings"
)

// An Opening is a part of the deny list that can be opened by name.
type Opening struct {
	// Name is what users type.
	Name string `json:"name"`
	// Opens says in one line what becomes possible, with the price.
	Opens string `json:"opens"`
}

// The names of the openings. OpenICMP is exported because a network namespace has to allow
// ping sockets as well.
const (
	openBPF         = "bpf"
	OpenICMP        = "icmp"
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

// Openings returns all openings, sorted by name. The caller owns the slice.
func Openings() []Opening {
	return []Opening{
		{openBPF, "load eBPF programs and maps, as far as the kernel allows an ordinary user"},
		{OpenICMP, "ping sockets (ICMP echo), so that ping works (only on loopback if the network is off); always open with the host's network, subject to its net.ipv4.ping_group_range"},
		{openIOUring, "io_uring; its requests bypass this filter and the observer, so unix and setuid must be opened with it"},
		{openKeyring, "kernel keyrings, including the user's keys in them (Kerberos, fscrypt)"},
		{openNetlink, "all netlink protocols, not just the list of interfaces and routes"},
		{openNUMA, "move the memory of processes between NUMA nodes"},
		{openPerf, "performance counters and tracing (perf), as far as the kernel allows an ordinary user"},
		{openPtrace, "trace processes and read or write their memory, as far as they are visible to the command"},
		{openSetuid, "set-uid and set-gid bits on files (set-gid directories need no flag); run by root, a command can leave a program that makes others root"},
		{openUnix, "all unix sockets, including those of local services that the command can see (dbus, docker, ssh-agent)"},
		{openUserfaultfd, "handle page faults in the program (userfaultfd)"},
		{openUserns, "new user and other namespaces (browsers); mounts in them stay denied; exposes much more of the kernel to attacks"},
	}
}

// UnknownOpeningError reports names that no opening has.
type UnknownOpeningError struct {
	// Names are the unknown names, in the order given.
	Names []string
	// Known are all names that exist, sorted.
	Known []string
}

// Error returns one sentence with the names that exist.
func (e *UnknownOpeningError) Error() string {
	return fmt.Sprintf("seccomp: unknown openings %q; choose from %s", e.Names, strings.Join(e.Known, ", "))
}

// A MissingOpeningsError reports an opening that opens others with it, which were not named.
type MissingOpeningsError struct {
	// Name is the opening, and Missing what it opens with it.
	Name    string
	Missing []string
}

// Error returns one sentence with what to add.
func (e *MissingOpeningsError) Error() string {
	return fmt.Sprintf("seccomp: opening %s opens unix sockets and set-uid bits, too, because no filter sees its requests; open %s as well",
		e.Name, strings.Join(e.Missing, " and "))
}

// Complete returns a [MissingOpeningsError] for names of which one opens more than is named.
func Complete(names []string) error {
	if !slices.Contains(names, openIOUring) {
		return nil
	}
	missing := slices.DeleteFunc([]string{openUnix, openSetuid},
		func(n string) bool { return slices.Contains(names, n) })
	if len(missing) > 0 {
		return &MissingOpeningsError{openIOUring, missing}
	}
	return nil
}

// opened returns the set of names, an [UnknownOpeningError], or a [MissingOpeningsError].
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
	return open, Complete(names)
}
