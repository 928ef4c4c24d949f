// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"net/netip"
	"os"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Config tells a [Supervisor] about the sandbox. The zero Config is of a command on the
// host's network at a level with mounts and without a judge.
type Config struct {
	// Judge may be nil: then only the mounts deny.
	Judge protect.Judge
	// PrivateNetwork says that the command has a network of its own in which only
	// loopback exists.
	PrivateNetwork bool
	// Redirected says that connections to all other addresses are led to a proxy, which judges
	// them, and that datagrams to them are refused by the kernel.
	Redirected bool
	// Routed are ports at which connections to all other addresses come to that proxy.
	Routed []uint16
	// Names is the one address beside the loopback ones that the command reaches in a private network:
	// that of the name server which this process serves. The zero value is none.
	Names netip.AddrPort
	// Refusals are those of the filter, which passes the calls that it refuses. Nil is for
	// a filter that refuses them itself.
	Refusals *seccomp.Refusals
	// NoSockets says that the command gets no internet sockets, because it has no
	// network of its own.
	NoSockets bool
	// UnixOpen says that unix sockets were opened to the command: where they connect
	// to is not judged.
	UnixOpen bool
	// Sockets are those of services that were granted by name: tasks may connect to them
	// wherever they are visible. They stay open until [Supervisor.Close] has returned. Places
	// are where services are that were not granted: a connect that finds nothing there is a
	// denial.
	Sockets []Socket
	Places  []string
	// Peers are the other commands of a shared sandbox, with which the command has its network in
	// common, and Group is the same text for those of equal rights. Nil is for a sandbox of its own.
	Peers *Peers
	Group string
	// OwnRoots says that tasks may change their root directory.
	OwnRoots bool
	// Reads says that the filter passes calls that only read, too.
	Reads bool
	// Writable lists the only writable paths of a level without mounts of its own:
	// absolute, clean and free of symbolic links. Nil means that the mounts decide.
	Writable []string
	// Shared are the writable places whose files may have names outside of them, Own
	// those that only the command has; they may lie in each other. They are as Writable.
	// Without them no hard link is reported.
	Shared, Own []string
	// ProtectHardLinks says that the command has no right of its own to open files in
	// Shared for writing: the supervisor opens them, except those with further names.
	ProtectHardLinks bool
	// IgnoreOwners says that the command cannot give files to other users and groups, and
	// that its attempts to do so in Shared and Own succeed without effect where this process
	// could. Others fail with EPERM there, as outside.
	IgnoreOwners bool
	// OnDenied is called with each denial that will be in the Report, when it happens first,
	// while its call waits for the answer. It must not block. Nil is not called.
	OnDenied func(sandbox.Denial)
	// Asking decides about accesses that a wall denies. Nil denies them at once.
	Asking *Asking
	// OnListen is called with each port of a private network at which a task is about to listen, once and for
	// at most 16 of them, while its call waits for the answer. It must not block. Nil is not called.
	OnListen func(port uint16)
}

// A Socket is the socket of a service that was granted to the command by name.
type Socket struct {
	File *os.File // its file, which is held open: no other one gets its number
	To   *os.File // the socket that connects lead to: the same, or one that can do less
}

// A Report lists what a supervisor has seen.
type Report struct {
	// Denials are the denied accesses, each operation and target once, in the order
	// in which they came first; at most [notify.MaxDenials].
	Denials []sandbox.Denial
	// Omitted counts denied accesses that found no room among the Denials.
	Omitted int
	// HardLinks are files with names that the command did not make, in the order in which
	// they were first opened for writing; at most [notify.MaxDenials]. HardLinksOmitted counts
	// further ones.
	HardLinks        []executor.HardLink
	HardLinksOmitted int
	// OwnershipIgnored is how many changes of owner or group succeeded without effect.
	OwnershipIgnored int
	// Renamed says that a directory may have been renamed.
	Renamed bool
	// Calls is how many calls were judged.
	Calls uint64
	// Err is why the supervision failed, after which every judged call of the command
	// failed; nil when it did not.
	Err error
}

// WritablePlaces returns the paths that the Landlock rulesets of a script make writable.
func WritablePlaces(s *launch.Script) []string {
	out := []string{}
	for _, st := range s.Steps {
		if st.Ruleset == nil {
			continue
		}
		for _, rule := range st.Ruleset.Rules {
			if rule.Path != "" {
				out = append(out, rule.Path)
			}
		}
	}
	return out
}
