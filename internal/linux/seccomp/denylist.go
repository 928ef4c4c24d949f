// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"slices"
	"strings"
)

// Options describe the command that a deny list is for. The zero Options have no
// architecture; apart from that they give the strictest list.
type Options struct {
	// Arch is the machine, "amd64" or "arm64".
	Arch string
	// Allow are names of [Openings]. Nil opens nothing; repeated names count once.
	Allow []string
	// HostNetwork says that the command shares the network of the host, with its
	// policy's consent: ping sockets are allowed then. The other socket rules stay.
	HostNetwork bool
	// OwnPID says that the command lives in a PID namespace of its own whose first
	// process cannot be traced. ptrace is allowed then, because it only reaches
	// processes of the same command.
	OwnPID bool
	// HostSpaces says that the command has no namespaces, so the filter does what they
	// would: it denies System V and POSIX message queues, semaphores and shared memory,
	// the priorities and limits of other processes, and, unless HostNetwork is set,
	// every socket but what the opening "unix" opens. The openings "icmp" and
	// "netlink" open nothing then.
	HostSpaces bool
	// OneUser says that the command is root and knows no other user: its changes of users and groups fail
	// as they do in its user namespace, so that a supervisor can tell why.
	OneUser bool
	// Observe hands the calls that change files or name addresses to a supervisor,
	// which must hold the filter's listener, and those that are refused, which it must
	// refuse with the answer of [Refusals]. Unix sockets of type stream and seqpacket
	// are allowed then, unless HostSpaces is set: the supervisor judges where they connect
	// to. Without HostNetwork datagram sockets are, too: it makes what they send.
	Observe bool
	// ObserveReads also hands it calls that open files for reading or run programs.
	ObserveReads bool
}

// The error numbers of the deny list, from asm-generic/errno*.h; both machines
// use these.
const (
	ePerm           = 1
	eAcces          = 13
	eInval          = 22
	eProtoNoSupport = 93
	eSockTNoSupport = 94
	eAFNoSupport    = 97
)

// The values that conditions compare with, from the kernel's uapi headers.
const (
	// linux/sched.h. All namespaces that clone can make; CLONE_NEWTIME shares
	// its bit with the exit signal there and exists for unshare only.
	cloneNewTime = 0x80
	cloneNewAny  = 0x00020000 | // NEWNS
		0x02000000 | // NEWCGROUP
		0x04000000 | // NEWUTS
		0x08000000 | // NEWIPC
		0x10000000 | // NEWUSER
		0x20000000 | // NEWPID
		0x40000000 // NEWNET

	// linux/socket.h, linux/net.h, linux/in.h, linux/netlink.h.
	afUnix, afInet, afInet6, afNetlink        = 1, 2, 10, 16
	sockStream, sockDgram, sockRaw, sockSeqpk = 1, 2, 3, 5
	sockTypeMask                              = 0xf // the rest are SOCK_CLOEXEC and SOCK_NONBLOCK
	protoICMP, protoTCP, protoUDP, protoICMP6 = 1, 6, 17, 58
	protoMPTCP                                = 262
	netlinkRoute                              = 0

	// asm-generic/ioctls.h; linux/tiocl.h for the second.
	tiocsti, tioclinux, tiocsetd = 0x5412, 0x541c, 0x5423

	// linux/fcntl.h. The kernel takes the command of fcntl as 32 bits.
	fSetLease, fNotify, fSetDeleg = 1024, 1026, 1040

	// linux/stat.h.
	modeSetID = 0o6000
	// S_IFBLK (0x6000) and S_IFCHR (0x2000) are the file types that read 0x2000
	// under this mask; pipes, sockets and regular files do not.
	modeDevMask, modeDev = 0xb000, 0x2000

	// asm-generic/fcntl.h: O_CREAT and the bit of O_TMPFILE that is its own.
	openMakes = 0x40 | 0x400000

	// linux/personality.h: PER_LINUX32, UNAME26 (both change what uname says)
	// and ADDR_NO_RANDOMIZE (debuggers); all ones asks without setting.
	personaFine  = 0x0008 | 0x20000 | 0x40000
	personaQuery = 0xffffffff

	// PRIO_USER of sys/resource.h and IOPRIO_WHO_USER of linux/ioprio.h: all
	// processes of a user.
	prioUser, ioprioUser = 2, 3
)

// Default returns the filter of a confined command, which allows every call but those in
// [DenyList]. It returns an [UnsupportedArchError], an [UnknownOpeningError] or a
// [MissingOpeningsError].
func Default(o Options) (Filter, error) {
	rules, err := DenyList(o)
	if err != nil {
		return Filter{}, err
	}
	return Filter{Arch: o.Arch, Rules: rules, Default: Allow, NotifyForeign: o.Observe}, nil
}

// DenyList returns the rules of [Default]. It names calls of all architectures. The
// answer is EPERM except where programs go on after another one: ENOSYS for calls that
// they try first and replace (clone3, io_uring), EACCES for leases, and the errors of a
// kernel that lacks a protocol for sockets.
//
// The set-uid rule has a gap: openat2 takes its mode from memory. A file that it creates
// loses the bits as soon as its size or content changes, because the command has no
// capabilities (tried on Linux 6.18 with ext4 and tmpfs), so the gap makes empty set-uid
// files only. Kernels before 5.18 keep the bits over fallocate on some file systems.
func DenyList(o Options) ([]Rule, error) {
	rules, err := refuse(o)
	if err != nil || !o.Observe {
		return rules, err
	}
	for i := range rules {
		if r := &rules[i]; r.Action > errnoBase && r.Action <= errnoBase+maxErrno && r.Name != unseen {
			r.Action = Notify
		}
	}
	return append(rules, observeRules(o)...), nil // after those that deny
}

// unseen is the one refused call that no supervisor gets. The C library makes it for each
// thread and process, and goes on with clone when the kernel lacks it: nothing is denied.
const unseen = "clone3"

// refuse returns the rules of the deny list with the answers that programs get.
func refuse(o Options) ([]Rule, error) {
	if archOf(o.Arch) == nil {
		return nil, &UnsupportedArchError{Arch: o.Arch}
	}
	open, err := opened(o.Allow)
	if err != nil {
		return nil, err
	}
	rules := slices.Concat(
		processRules(open, o.OwnPID),
		kernelRules(open),
		namespaceRules(open),
		hostRules(),
		ioctlRules(),
		leaseRules(),
		networkRules(open, o),
		modeRules(open),
	)
	if o.HostSpaces {
		rules = append(rules, sharedRules()...)
	}
	if o.OneUser {
		rules = append(rules, userRules()...)
	}
	return rules, nil
}

// userRules refuse root to become a user or group that its user namespace does not map.
func userRules() []Rule {
	rules := []Rule{denyIf("setgroups", num(0, Ne, 0))} // to have none fails as well, which programs ignore
	for name, ids := range map[string]int{
		"setuid": 1, "setgid": 1, "setreuid": 2, "setregid": 2, "setresuid": 3, "setresgid": 3,
	} {
		for i := range ids {
			when := []Cond{num(i, Ne, 0)}
			if ids > 1 { // all ones keep an id
				when = append(when, num(i, Ne, 0xffffffff))
			}
			rules = append(rules, Rule{Name: name, When: when, Action: Errno(eInval)})
		}
	}
	slices.SortStableFunc(rules, func(a, b Rule) int { return strings.Compare(a.Name, b.Name) })
	return rules
}

// openedBy notes the opening without which rules are there.
func openedBy(opening string, rules ...Rule) []Rule {
	for i := range rules {
		rules[i].Opening = opening
	}
	return rules
}

// deny returns rules by which calls fail with EPERM.
func deny(names ...string) []Rule { return always(Errno(ePerm), names...) }

// always returns a rule without conditions for each call.
func always(a Action, names ...string) []Rule {
	rules := make([]Rule, len(names))
	for i, n := range names {
		rules[i] = Rule{Name: n, Action: a}
	}
	return rules
}

// denyIf returns a rule by which a call fails with EPERM where all conditions hold.
func denyIf(name string, when ...Cond) Rule {
	return Rule{Name: name, When: when, Action: Errno(ePerm)}
}

// num is a condition on an argument that the kernel takes as 32 bits.
func num(arg int, op CondOp, value uint64) Cond {
	return Cond{Arg: arg, Int: true, Op: op, Value: value}
}

// bits compares the bits of a 32-bit argument under mask.
func bits(arg int, mask uint64, op CondOp, value uint64) Cond {
	return Cond{Arg: arg, Int: true, Op: op, Mask: mask, Value: value}
}

// processRules deny access to other processes. The kernel checks the same by user,
// capabilities and namespace; these rules also hold where there is no PID namespace.
func processRules(open map[string]bool, ownPID bool) []Rule {
	if open[openPtrace] {
		return nil
	}
	rules := deny("process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd")
	if !ownPID {
		rules = append(rules, deny("ptrace")...)
	}
	return openedBy(openPtrace, rules...)
}

// kernelRules deny large parts of the kernel that few commands need and that had many
// faults. io_uring also makes other calls without the filter.
func kernelRules(open map[string]bool) []Rule {
	var rules []Rule
	add := func(name string, rs []Rule) {
		if !open[name] {
			rules = append(rules, openedBy(name, rs...)...)
		}
	}
	add(openIOUring, always(Errno(errNoSys), "io_uring_setup", "io_uring_enter", "io_uring_register"))
	add(openBPF, deny("bpf"))
	add(openPerf, deny("perf_event_open"))
	add(openUserfaultfd, deny("userfaultfd"))
	// Keyrings belong to the user, not to a namespace.
	add(openKeyring, deny("add_key", "request_key", "keyctl"))
	// These two reach other processes; mbind and set_mempolicy do not.
	add(openNUMA, deny("move_pages", "migrate_pages"))
	return rules
}

// namespaceRules deny new namespaces and mounts. A user namespace gives its maker all
// capabilities inside, and with them the parts of the kernel that were written for root.
// statmount and listmount only read and are allowed.
func namespaceRules(open map[string]bool) []Rule {
	if open[openUserns] {
		return nil
	}
	rules := []Rule{
		denyIf("unshare", bits(0, cloneNewAny|cloneNewTime, MaskedNe, 0)),
		denyIf("clone", bits(0, cloneNewAny, MaskedNe, 0)),
	}
	// The flags of clone3 lie in memory. The C libraries and Go fall back to clone on
	// ENOSYS, and only on that.
	rules = append(rules, always(Errno(errNoSys), "clone3")...)
	rules = append(rules, deny("setns", "chroot", "sethostname", "setdomainname")...)
	// Of these Landlock denies what matters in any namespace, so the opening is no help.
	mounts := deny("mount", "umount2", "pivot_root",
		"open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick",
		"mount_setattr")
	return append(openedBy(openUserns, rules...), mounts...)
}

// hostRules deny what changes the machine as a whole. Most of it needs a capability that
// the command does not have: the rules are a second wall. Calls that only read without a
// capability (adjtimex, clock_adjtime) are allowed.
func hostRules() []Rule {
	rules := deny(
		// Opens any file of a file system by its number, whatever its path.
		// name_to_handle_at, which only tells the number, is allowed.
		"open_by_handle_at",
		"init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms", "query_module",
		"kexec_load", "kexec_file_load", "reboot",
		"swapon", "swapoff", "quotactl", "quotactl_fd", "acct", "fanotify_init",
		"syslog", // reads the kernel's messages, with addresses and devices
		"settimeofday", "clock_settime",
		"iopl", "ioperm", "modify_ldt", "vhangup",
		// Remains of old kernels; no current program calls them.
		"lookup_dcookie", "nfsservctl", "_sysctl", "uselib", "ustat", "sysfs",
	)
	// Other personalities turn off protections of memory.
	return append(rules, denyIf("personality", num(0, Ne, personaQuery),
		bits(0, 0xffffffff&^personaFine, MaskedNe, 0)))
}

// ioctlRules protect the terminal, which the command shares with its caller. The first
// two put characters into its input, as if the user had typed them after the command has
// ended. The third switches the line discipline, which loads rarely used drivers with a
// bad record. Both machines use these numbers. The ioctls of file systems (FS_IOC_*) are
// allowed: they need a descriptor that may write, or a capability.
func ioctlRules() []Rule {
	return []Rule{
		denyIf("ioctl", num(1, Eq, tiocsti)),
		denyIf("ioctl", num(1, Eq, tioclinux)),
		denyIf("ioctl", num(1, Eq, tiocsetd)),
	}
}

// leaseRules deny the commands of fcntl by which a descriptor that only reads acts on
// programs outside, through read-only mounts: with a lease or a delegation of a file of
// this user, opens of others fail or wait for up to 45 seconds, and the holder gets a
// signal for each; a directory notification sends a signal for each change. EACCES is
// what the kernel answers where the file belongs to another user, so programs that use
// leases go on without them. Locks stay: they bind only programs that ask for them.
func leaseRules() []Rule {
	var rules []Rule
	for _, command := range []uint64{fSetLease, fSetDeleg, fNotify} {
		rules = append(rules, Rule{Name: "fcntl", When: []Cond{num(1, Eq, command)}, Action: Errno(eAcces)})
	}
	return rules
}

// networkRules are the rules for sockets. Without a network namespace a socket would be
// one of the host's network, so none is made, of any family: the command has no loopback
// of its own either.
func networkRules(open map[string]bool, o Options) []Rule {
	if !o.HostSpaces || o.HostNetwork {
		return append(socketRules(open, o), pairRules(open, o)...)
	}
	unix := Rule{Name: "socket", When: []Cond{num(0, Eq, afUnix)}, Action: Errno(ePerm), Opening: openUnix}
	if open[openUnix] {
		unix.Action = Allow
	}
	return slices.Concat([]Rule{unix}, deny("socket"), pairRules(open, o))
}

// socketRules allow TCP, UDP and the list of interfaces. Which addresses can be reached
// is decided elsewhere.
func socketRules(open map[string]bool, o Options) []Rule {
	var rules []Rule
	add := func(a Action, when ...Cond) {
		rules = append(rules, Rule{Name: "socket", When: when, Action: a})
	}
	refuse := func(a Action, opening string, when ...Cond) {
		rules = append(rules, Rule{Name: "socket", When: when, Action: a, Opening: opening})
	}
	// A unix socket can reach any local service by path. EPERM is what programs and
	// people read as "forbidden"; name look-ups over a unix socket (nscd) go on after
	// any error.
	switch {
	case open[openUnix]:
		add(Allow, num(0, Eq, afUnix))
	case o.Observe && !o.HostSpaces:
		add(Allow, num(0, Eq, afUnix), bits(1, sockTypeMask, MaskedEq, sockStream))
		add(Allow, num(0, Eq, afUnix), bits(1, sockTypeMask, MaskedEq, sockSeqpk))
		if o.judgesSends() {
			add(Allow, num(0, Eq, afUnix), bits(1, sockTypeMask, MaskedEq, sockDgram))
		}
	}
	refuse(Errno(ePerm), openUnix, num(0, Eq, afUnix))
	if open[openNetlink] {
		add(Allow, num(0, Eq, afNetlink))
	}
	add(Allow, num(0, Eq, afNetlink), num(2, Eq, netlinkRoute))
	refuse(Errno(eProtoNoSupport), openNetlink, num(0, Eq, afNetlink))
	add(Errno(eAFNoSupport), num(0, Ne, afInet), num(0, Ne, afInet6))
	add(Errno(ePerm), bits(1, sockTypeMask, MaskedEq, sockRaw))
	add(Errno(eSockTNoSupport), bits(1, sockTypeMask, MaskedNe, sockStream),
		bits(1, sockTypeMask, MaskedNe, sockDgram))
	ping := Errno(eProtoNoSupport)
	if o.HostNetwork || open[OpenICMP] {
		ping = Allow
	}
	for _, protocol := range []uint64{protoICMP, protoICMP6} {
		refuse(ping, OpenICMP, bits(1, sockTypeMask, MaskedEq, sockDgram), num(2, Eq, protocol))
	}
	// Multipath TCP reaches the addresses that TCP reaches, and is what Go's servers listen
	// with. What needs a right, such as addresses for more paths, the command cannot change.
	add(Allow, bits(1, sockTypeMask, MaskedEq, sockStream), num(2, Eq, protoMPTCP))
	add(Errno(eProtoNoSupport), num(2, Ne, 0), num(2, Ne, protoTCP), num(2, Ne, protoUDP))
	return rules
}

// judgesSends reports whether a supervisor judges where each message of a unix socket goes.
func (o Options) judgesSends() bool { return o.Observe && !o.HostSpaces && !o.HostNetwork }

// pairRules allow pairs of stream or seqpacket sockets, whose ends are bound to each
// other for good. A datagram or raw end can still send to a path, so pairs of datagram
// sockets are allowed where that is judged.
func pairRules(open map[string]bool, o Options) []Rule {
	rules := []Rule{{Name: "socketpair", When: []Cond{num(0, Ne, afUnix)}, Action: Errno(eAFNoSupport)}}
	if !open[openUnix] {
		when := []Cond{bits(1, sockTypeMask, MaskedNe, sockStream),
			bits(1, sockTypeMask, MaskedNe, sockSeqpk)}
		if o.judgesSends() {
			when = append(when, bits(1, sockTypeMask, MaskedNe, sockDgram))
		}
		rules = append(rules, openedBy(openUnix, denyIf("socketpair", when...))...)
	}
	return rules
}

// modeRules deny device nodes, and set-uid and set-gid bits: a command that real root
// runs could otherwise leave a set-uid program of root in its workspace. The bits are
// denied for directories too, since a mode does not tell what it is for: a supervisor, which
// can tell, gives directories the set-gid bit itself. mkdir needs no rule, because the kernel
// drops the bits there. The kernel takes modes and flags as 32 bits or less.
func modeRules(open map[string]bool) []Rule {
	rules := []Rule{
		denyIf("mknod", bits(1, modeDevMask, MaskedEq, modeDev)),
		denyIf("mknodat", bits(2, modeDevMask, MaskedEq, modeDev)),
	}
	if open[openSetuid] {
		return rules
	}
	var setID []Rule
	for _, c := range []struct {
		name string
		mode int // the argument that holds the mode
	}{
		{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2},
		{"creat", 1}, {"mknod", 1}, {"mknodat", 2},
	} {
		setID = append(setID, denyIf(c.name, bits(c.mode, modeSetID, MaskedNe, 0)))
	}
	// Without one of these flags the register of the mode holds leftovers.
	setID = append(setID,
		denyIf("open", bits(1, openMakes, MaskedNe, 0), bits(2, modeSetID, MaskedNe, 0)),
		denyIf("openat", bits(2, openMakes, MaskedNe, 0), bits(3, modeSetID, MaskedNe, 0)))
	return append(rules, openedBy(openSetuid, setID...)...)
}

// sharedRules stand in for the IPC and PID namespaces that a command does not have.
// Objects of System V belong to a user and not to a program, so even those that the
// command makes could lead to others.
func sharedRules() []Rule {
	rules := deny("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl",
		"msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink")
	for _, name := range []string{"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam",
		"sched_setscheduler"} {
		rules = append(rules, denyIf(name, num(0, Ne, 0))) // of another task
	}
	return append(rules,
		denyIf("setpriority", num(1, Ne, 0)),
		denyIf("setpriority", num(0, Eq, prioUser)),
		denyIf("ioprio_set", num(1, Ne, 0)),
		denyIf("ioprio_set", num(0, Eq, ioprioUser)))
}
