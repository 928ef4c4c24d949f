// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

// HandOver is the flags argument of the one sendmsg(2) that an observing filter
// lets through unseen: the one by which the listener itself is handed out, which
// could not wait for an answer. It is a sum of flags that mean nothing together
// and that stream sockets ignore: MSG_DONTROUTE, MSG_EOR, MSG_CONFIRM, MSG_NOSIGNAL
// and MSG_MORE of linux/socket.h. A command that uses it gains that one datagram to
// an address that its network does not have is not reported.
const HandOver = 0x4 | 0x80 | 0x800 | 0x4000 | 0x8000

// The open flags that ask for more than reading, from asm-generic/fcntl.h. Both
// machines use these numbers. O_TMPFILE needs one of the first two beside it.
const openChanges = 0x1 | 0x2 | 0x40 | 0x200 // O_WRONLY, O_RDWR, O_CREAT, O_TRUNC

// observeRules hand calls to the supervisor that name something a wall may refuse:
// a file to be changed, or an address. Reading is not seen, unless reads is set:
// then it is, and the price is paid by every program that reads.
func observeRules(o Options) []Rule {
	var rules []Rule
	ask := func(names ...string) {
		for _, n := range names {
			rules = append(rules, Rule{Name: n, Action: Notify})
		}
	}
	if o.ObserveReads {
		ask("open", "openat", "execve", "execveat")
	} else {
		words := "to change the file"
		rules = append(rules,
			Rule{Name: "open", When: []Cond{bits(1, openChanges, MaskedNe, 0)}, Action: Notify, Words: words},
			Rule{Name: "openat", When: []Cond{bits(2, openChanges, MaskedNe, 0)}, Action: Notify, Words: words})
	}
	ask("chdir", "fchdir")  // nothing is refused: the supervisor remembers where tasks are
	ask("openat2", "creat", // the flags of openat2 lie in memory
		"unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2",
		"mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "link", "linkat",
		"truncate",
		"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat",
		"utime", "utimes", "futimesat", "utimensat",
		"setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat")
	return append(rules, addressRules(o)...)
}

// addressRules are the ones about sockets. On the host's network nothing keeps a
// command from an internet address, and only unix sockets are judged.
func addressRules(o Options) []Rule {
	rules := []Rule{{Name: "connect", Action: Notify}, {Name: "bind", Action: Notify}}
	if o.HostNetwork {
		return rules
	}
	return append(rules,
		Rule{Name: "sendto", When: []Cond{{Arg: 4, Op: Ne, Value: 0}}, Action: Notify, Words: "with an address"},
		Rule{Name: "sendmsg", When: []Cond{num(2, Eq, HandOver)}, Action: Allow, Words: "of the listener"},
		Rule{Name: "sendmsg", Action: Notify},
		Rule{Name: "sendmmsg", Action: Notify})
}
