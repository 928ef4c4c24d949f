// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import "slices"

// HandOver is the flags argument of the one sendmsg(2) that an observing filter allows
// unseen: it hands out the listener itself, and nothing could answer it before. It is a
// sum of flags that make no sense together and that unix sockets ignore: MSG_DONTROUTE,
// MSG_EOR, MSG_CONFIRM, MSG_NOSIGNAL and MSG_MORE of linux/socket.h. [Seal] closes it.
const HandOver = 0x4 | 0x80 | 0x800 | 0x4000 | 0x8000

// Seal returns the filter to install when the listener is out, as [Program] does: it fails
// the call that [HandOver] let through, by which a command could send datagrams unseen. The
// error is an [UnsupportedArchError].
func Seal(machine string) ([]uint64, error) {
	a := archOf(machine)
	if a == nil {
		return nil, &UnsupportedArchError{Arch: machine}
	}
	const flags = 2 // the argument
	return Words([]Instruction{
		{Code: opLoad, K: offArch},
		{Code: opJEq, K: a.audit, JF: 5}, // the other filter answers foreign calls
		{Code: opLoad, K: offNR},
		{Code: opJEq, K: uint32(slices.Index(a.names, "sendmsg")), JF: 3},
		{Code: opLoad, K: offArgs + 8*flags},
		{Code: opJEq, K: HandOver, JF: 1},
		{Code: opRet, K: uint32(Errno(ePerm))},
		{Code: opRet, K: uint32(Allow)},
	}), nil
}

// openChanges are the open flags that ask for more than reading, from asm-generic/fcntl.h:
// O_WRONLY, O_RDWR, O_CREAT and O_TRUNC. O_TMPFILE needs one of the first two beside it.
const openChanges = 0x1 | 0x2 | 0x40 | 0x200

// observeRules hand calls to the supervisor that name what a wall may deny: a file to be
// changed, or an address. With ObserveReads every program pays for what it reads, so it
// is set only where reads can be denied.
func observeRules(o Options) []Rule {
	var rules []Rule
	if o.ObserveReads {
		rules = always(Notify, "open", "openat", "execve", "execveat")
	} else {
		rules = []Rule{
			{Name: "open", When: []Cond{bits(1, openChanges, MaskedNe, 0)}, Action: Notify},
			{Name: "openat", When: []Cond{bits(2, openChanges, MaskedNe, 0)}, Action: Notify},
		}
	}
	rules = append(rules, always(Notify,
		"chdir", "fchdir", // never denied: the supervisor remembers working directories
		"openat2", "creat", // the flags of openat2 lie in memory
		"unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2",
		"mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "link", "linkat",
		"truncate",
		"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat",
		"utime", "utimes", "futimesat", "utimensat",
		"setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr",
		"removexattrat",
		"connect", "bind")...)
	judged := !o.HostSpaces && !slices.Contains(o.Allow, openUnix) // where connects to unix sockets are
	if judged {
		rules = append(rules, always(Notify, "listen")...)
		rules = append(rules, optionRules("getsockopt", soPeerCred, soPeerPIDFD)...)
	}
	if o.HostNetwork { // every internet address is allowed, so only unix sockets are judged
		return rules
	}
	if judged { // and sends are made
		rules = append(rules, optionRules("setsockopt", soPassCred, soPassPIDFD)...)
	}
	return append(rules,
		Rule{Name: "sendto", When: []Cond{{Arg: 4, Op: Ne, Value: 0}}, Action: Notify}, // with an address
		Rule{Name: "sendmsg", When: []Cond{num(2, Eq, HandOver)}, Action: Allow},
		Rule{Name: "sendmsg", Action: Notify},
		Rule{Name: "sendmmsg", Action: Notify})
}

// Options of sockets that are about who is at the other end, from asm-generic/socket.h: a supervisor that
// connects and sends for a command is there in its place.
const (
	solSocket   = 1
	soPassCred  = 16
	soPeerCred  = 17
	soPassPIDFD = 76
	soPeerPIDFD = 77
)

// optionRules hand calls for some options of sockets to the supervisor.
func optionRules(call string, options ...uint64) []Rule {
	var rules []Rule
	for _, o := range options {
		when := []Cond{num(1, Eq, solSocket), num(2, Eq, o)}
		rules = append(rules, Rule{Name: call, When: when, Action: Notify})
	}
	return rules
}
