// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import "slices"

// Options say for whom a deny list is made. The zero value lacks an
// architecture; apart from that it is the strictest list.
type Options struct {
	// Arch is the machine, "amd64" or "arm64".
	Arch string
	// Allow are names of [Openings]. Nil opens nothing; repeated names count
	// once.
	Allow []string
	// HostNetwork says that the command shares the network of the host, with
	// its policy's consent: ping sockets are then let through. The other socket
	// rules stay.
	HostNetwork bool
	// OwnPID says that the command lives in a PID namespace of its own whose
	// first process cannot be traced: ptrace is then let through, because it
	// only reaches processes of the same command.
	OwnPID bool
	// HostSpaces says that the command has no namespaces at all, so that filters
	// have to do what those would: System V and POSIX message queues, semaphores
	// and shared memory are refused, as are the priorities and limits of other
	// processes; and, unless HostNetwork is set, every socket but what the
	// opening "unix" opens. The openings "icmp" and "netlink" open nothing then.
	HostSpaces bool
	// Observe hands the calls that change files or name addresses to a supervisor,
	// which must hold the filter's listener. Unix sockets of type stream and
	// seqpacket are let through then, unless HostSpaces is set or io_uring is opened:
	// where they connect to is the supervisor's to judge.
	Observe bool
	// ObserveReads hands it calls that open files for reading, too, and those that
	// run programs.
	ObserveReads bool
}

// The error numbers of the deny list, from asm-generic/errno*.h; both machines
// use these.
const (
	ePerm           = 1
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
	netlinkRoute                              = 0

	// asm-generic/ioctls.h; linux/tiocl.h for the second.
	tiocsti, tioclinux, tiocsetd = 0x5412, 0x541c, 0x5423

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
)

// Default returns the filter of a confined command: everything is allowed but
// the [DenyList] of o. It returns an [UnsupportedArchError] or an
// [UnknownOpeningError].
func Default(o Options) (Filter, error) {
	rules, err := DenyList(o)
	if err != nil {
		return Filter{}, err
	}
	return Filter{Arch: o.Arch, Rules: rules, Default: Allow}, nil
}

// DenyList returns the rules of [Default], for use in a filter that has more of
// them. It names calls of all architectures. The answer is EPERM except where
// programs know how to go on after another one: ENOSYS for calls that they try
// first and replace (clone3, io_uring), and the errors of a kernel that lacks a
// protocol for sockets. The caller owns the slice.
//
// The set-uid rule has a gap: openat2 takes its mode from memory. A file that it
// creates loses the bits as soon as its size or content changes, because the
// command has no capabilities (tried on Linux 6.18 with ext4 and tmpfs), so the
// gap makes empty set-uid files only. Kernels before 5.18 keep the bits over
// fallocate on some file systems.
func DenyList(o Options) ([]Rule, error) {
	if archOf(o.Arch) == nil {
		return nil, &UnsupportedArchError{Arch: o.Arch}
	}
	open, err := opened(o.Allow)
	if err != nil {
		return nil, err
	}
	return slices.Concat(
		processRules(open, o.OwnPID),
		kernelRules(open),
		namespaceRules(open),
		hostRules(),
		ioctlRules(),
		networkRules(open, o),
		modeRules(open),
		sharedRules(o.HostSpaces),
		observed(o),
	), nil
}

// observed are the rules for a supervisor; those that refuse come before them.
func observed(o Options) []Rule {
	if !o.Observe {
		return nil
	}
	return observeRules(o)
}

// deny refuses calls with EPERM.
func deny(names ...string) []Rule { return refuse(ePerm, names...) }

// refuse refuses calls with an error number.
func refuse(errno uint16, names ...string) []Rule {
	out := make([]Rule, len(names))
	for i, n := range names {
		out[i] = Rule{Name: n, Action: Errno(errno)}
	}
	return out
}

// num is a condition on an argument that the kernel takes as 32 bits.
func num(arg int, op CondOp, value uint64) Cond {
	return Cond{Arg: arg, Int: true, Op: op, Value: value}
}

// bits compares the bits of a 32-bit argument under mask.
func bits(arg int, mask uint64, op CondOp, value uint64) Cond {
	return Cond{Arg: arg, Int: true, Op: op, Mask: mask, Value: value}
}

// processRules keep commands out of other processes. The kernel checks the same
// by user, capabilities and namespace; these rules also hold where there is no
// PID namespace.
func processRules(open map[string]bool, ownPID bool) []Rule {
	if open[openPtrace] {
		return nil
	}
	rules := deny("process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd")
	if !ownPID {
		rules = append(rules, deny("ptrace")...)
	}
	return rules
}

// kernelRules close large parts of the kernel that few commands need and that
// had many faults. io_uring also runs other calls out of the filter's sight.
func kernelRules(open map[string]bool) []Rule {
	var rules []Rule
	add := func(name string, rs []Rule) {
		if !open[name] {
			rules = append(rules, rs...)
		}
	}
	add(openIOUring, refuse(errNoSys, "io_uring_setup", "io_uring_enter", "io_uring_register"))
	add(openBPF, deny("bpf"))
	add(openPerf, deny("perf_event_open"))
	add(openUserfaultfd, deny("userfaultfd"))
	// Keyrings belong to the user, not to a namespace.
	add(openKeyring, deny("add_key", "request_key", "keyctl"))
	// These two reach other processes; mbind and set_mempolicy do not.
	add(openNUMA, deny("move_pages", "migrate_pages"))
	return rules
}

// namespaceRules refuse new namespaces and mounts. A user namespace gives its
// maker all capabilities inside, and with them the parts of the kernel that
// were written for root. statmount and listmount only read and stay open.
func namespaceRules(open map[string]bool) []Rule {
	if open[openUserns] {
		return nil
	}
	words := "with flags for new namespaces"
	rules := []Rule{
		{Name: "unshare", When: []Cond{bits(0, cloneNewAny|cloneNewTime, MaskedNe, 0)}, Action: Errno(ePerm), Words: words},
		{Name: "clone", When: []Cond{bits(0, cloneNewAny, MaskedNe, 0)}, Action: Errno(ePerm), Words: words},
	}
	// The flags of clone3 lie in memory. The C libraries and Go fall back to
	// clone on ENOSYS, and only on that.
	rules = append(rules, refuse(errNoSys, "clone3")...)
	return append(rules, deny("setns",
		"mount", "umount2", "pivot_root", "chroot",
		"open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
		"sethostname", "setdomainname")...)
}

// hostRules refuse what changes the machine as a whole. Most of it needs a
// capability that the command does not have: the rules are a second wall. Calls
// that only read without a capability (adjtimex, clock_adjtime) stay open.
func hostRules() []Rule {
	rules := deny(
		// Opens any file of a file system by its number, past all paths.
		// name_to_handle_at, which only tells the number, stays open.
		"open_by_handle_at",
		"init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms", "query_module",
		"kexec_load", "kexec_file_load", "reboot",
		"swapon", "swapoff", "quotactl", "quotactl_fd", "acct", "fanotify_init",
		"syslog", // reads the kernel's messages, with addresses and devices
		"settimeofday", "clock_settime",
		"iopl", "ioperm", "modify_ldt", "vhangup",
		// Remains of old kernels; nothing current calls them.
		"lookup_dcookie", "nfsservctl", "_sysctl", "uselib", "ustat", "sysfs",
	)
	return append(rules, Rule{
		Name: "personality",
		// Others turn off protections of memory.
		When:   []Cond{num(0, Ne, personaQuery), bits(0, 0xffffffff&^personaFine, MaskedNe, 0)},
		Action: Errno(ePerm),
		Words:  "other than linux, linux32, uname26 and no-randomize",
	})
}

// ioctlRules guard the terminal, which the command shares with its caller. The
// first two put characters into its input, as if the person had typed them
// after the command has ended. The third switches the line discipline, which
// loads rarely used drivers with a bad record. All are the same on both
// machines, and the kernel takes the number as 32 bits. The ioctls of file
// systems (FS_IOC_*) stay open: they need a descriptor that may write, or a
// capability.
func ioctlRules() []Rule {
	return []Rule{
		{Name: "ioctl", When: []Cond{num(1, Eq, tiocsti)}, Action: Errno(ePerm), Words: "with TIOCSTI"},
		{Name: "ioctl", When: []Cond{num(1, Eq, tioclinux)}, Action: Errno(ePerm), Words: "with TIOCLINUX"},
		{Name: "ioctl", When: []Cond{num(1, Eq, tiocsetd)}, Action: Errno(ePerm), Words: "with TIOCSETD"},
	}
}

// socketRules let TCP, UDP and the list of interfaces through. Which addresses
// can be reached is not their matter.
//
// A unix socket can reach any local service by path, and a datagram or raw end
// of a pair can still send to a path; the ends of a stream or seqpacket pair are
// bound to each other for good. EPERM is what programs and people read as
// "forbidden"; name look-ups over a unix socket (nscd) go on after any error.
func socketRules(open map[string]bool, o Options) []Rule {
	rule := func(a Action, words string, when ...Cond) Rule {
		return Rule{Name: "socket", When: when, Action: a, Words: words}
	}
	var rules []Rule
	switch {
	case open[openUnix]:
		rules = append(rules, rule(Allow, "with family unix", num(0, Eq, afUnix)))
	case o.Observe && !o.HostSpaces && !open[openIOUring]: // which connects out of everybody's sight
		rules = append(rules,
			rule(Allow, "with family unix, type stream", num(0, Eq, afUnix), bits(1, sockTypeMask, MaskedEq, sockStream)),
			rule(Allow, "with family unix, type seqpacket", num(0, Eq, afUnix), bits(1, sockTypeMask, MaskedEq, sockSeqpk)),
			rule(Errno(ePerm), "with family unix", num(0, Eq, afUnix)))
	default:
		rules = append(rules, rule(Errno(ePerm), "with family unix", num(0, Eq, afUnix)))
	}
	if open[openNetlink] {
		rules = append(rules, rule(Allow, "with family netlink", num(0, Eq, afNetlink)))
	} else {
		rules = append(rules,
			rule(Allow, "with family netlink, protocol route", num(0, Eq, afNetlink), num(2, Eq, netlinkRoute)),
			rule(Errno(eProtoNoSupport), "with family netlink, another protocol", num(0, Eq, afNetlink)))
	}
	rules = append(rules,
		rule(Errno(eAFNoSupport), "with a family other than inet and inet6", num(0, Ne, afInet), num(0, Ne, afInet6)),
		rule(Errno(ePerm), "with type raw", bits(1, sockTypeMask, MaskedEq, sockRaw)),
		rule(Errno(eSockTNoSupport), "with a type other than stream and dgram",
			bits(1, sockTypeMask, MaskedNe, sockStream), bits(1, sockTypeMask, MaskedNe, sockDgram)))
	if o.HostNetwork || open[openICMP] {
		rules = append(rules,
			rule(Allow, "with type dgram, protocol icmp", bits(1, sockTypeMask, MaskedEq, sockDgram), num(2, Eq, protoICMP)),
			rule(Allow, "with type dgram, protocol icmpv6", bits(1, sockTypeMask, MaskedEq, sockDgram), num(2, Eq, protoICMP6)))
	}
	rules = append(rules, rule(Errno(eProtoNoSupport), "with a protocol other than tcp and udp",
		num(2, Ne, 0), num(2, Ne, protoTCP), num(2, Ne, protoUDP)))

	rules = append(rules, Rule{
		Name: "socketpair", When: []Cond{num(0, Ne, afUnix)},
		Action: Errno(eAFNoSupport), Words: "with a family other than unix",
	})
	if open[openUnix] {
		return rules
	}
	return append(rules, Rule{
		Name: "socketpair",
		When: []Cond{
			bits(1, sockTypeMask, MaskedNe, sockStream),
			bits(1, sockTypeMask, MaskedNe, sockSeqpk),
		},
		Action: Errno(ePerm), Words: "with a type other than stream and seqpacket",
	})
}

// modeRules refuse device nodes, and set-uid and set-gid bits: a command that
// real root runs could otherwise leave a set-uid program of root in its
// workspace. The bits are refused for folders too, since a mode does not tell
// what it is for; mkdir needs no rule, because the kernel drops the bits there.
// The kernel takes modes and flags as 32 bits or less.
func modeRules(open map[string]bool) []Rule {
	var rules []Rule
	add := func(name string, words string, when ...Cond) {
		rules = append(rules, Rule{Name: name, When: when, Action: Errno(ePerm), Words: words})
	}
	add("mknod", "of a device", bits(1, modeDevMask, MaskedEq, modeDev))
	add("mknodat", "of a device", bits(2, modeDevMask, MaskedEq, modeDev))
	if open[openSetuid] {
		return rules
	}
	words := "with set-uid or set-gid bits"
	for _, c := range []struct {
		name string
		mode int // the argument that holds the mode
	}{
		{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2},
		{"creat", 1}, {"mknod", 1}, {"mknodat", 2},
	} {
		add(c.name, words, bits(c.mode, modeSetID, MaskedNe, 0))
	}
	// Without one of these flags the register of the mode holds leftovers.
	add("open", words, bits(1, openMakes, MaskedNe, 0), bits(2, modeSetID, MaskedNe, 0))
	add("openat", words, bits(2, openMakes, MaskedNe, 0), bits(3, modeSetID, MaskedNe, 0))
	return rules
}
