// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/command/script"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A power is what no program has in a sandbox, and no flag gives. Nothing observes that it is missing: the
// kernel decides by the rights and the namespaces of the process, which then prints "not permitted".
type power struct {
	programs []string
	words    []string // one of them is an argument; nil is none that matters
	root     bool     // root only: others lack it outside too, and what the program says is the truth
	call     string
	why      string
}

var powers = []power{
	{programs: []string{"su", "sudo", "doas", "runuser", "pkexec", "newgrp", "sg", "gosu"}, call: "setuid",
		why: "programs in a sandbox cannot become another user"},
	{programs: []string{"nice", "renice", "chrt", "ionice"}, root: true, call: "setpriority",
		why: "programs in a sandbox cannot raise their priority"},
	{programs: []string{"ip", "ifconfig", "route", "tc", "iptables", "ip6tables", "nft", "wg", "brctl"},
		words: []string{"set", "add", "del", "delete", "replace", "change", "flush", "up", "down", "-A", "-D",
			"-F", "-I", "-P", "-N", "-t", "-f"},
		call: "sendmsg(NETLINK_ROUTE)", why: "the network settings of a sandbox are fixed"},
	{programs: []string{"chattr", "setcap", "losetup", "swapon", "swapoff", "modprobe", "insmod", "rmmod"},
		root: true, call: "ioctl",
		why: "programs in a sandbox have no rights over the kernel and its devices"},
}

// byProcess are programs that act on a process that a flag names.
var byProcess = []string{"gdb", "lldb", "strace", "ltrace", "perf", "lsof", "renice", "taskset", "prlimit",
	"nsenter", "py-spy", "rbspy", "reptyr"}

// byNumber are those that take the number of a process as it is.
var byNumber = []string{"kill", "gcore", "pstack", "jstack", "jmap", "jcmd", "jinfo", "pmap", "pwdx"}

// Rights concludes, from the words of a command that failed, that one of its programs needed what no program
// has in a sandbox. It returns one guess, or none where a denial that was seen says why that program failed.
func (r *DeniedRun) Rights(exit int, seen []sandbox.Denial) []sandbox.Denial {
	if exit == 0 || !r.Local || r.OS != "linux" || r.Policy.Mode() != sandbox.Managed {
		return nil
	}
	r.look()
	for _, use := range script.Read(r.Args).Uses {
		words := known(use.Args)
		if len(words) == 0 {
			continue
		}
		call, why := r.lacking(words)
		if why == "" || slices.ContainsFunc(seen, func(d sandbox.Denial) bool {
			return d.Op == sandbox.Syscall && path.Base(d.Program) == path.Base(words[0]) &&
				r.Habit(&d, exit) == ""
		}) {
			continue
		}
		d := guessed("", "")
		d.Access, d.NoGrant = sandbox.Access{Op: sandbox.Syscall, Call: call}, true
		d.Rule = NothingOpens + why
		return []sandbox.Denial{d}
	}
	return nil
}

// lacking returns a call that a program is denied for want of a right, and why; empty where none is known.
func (r *DeniedRun) lacking(words []string) (call, why string) {
	name, isRoot := path.Base(words[0]), os.Geteuid() == 0
	if pid := r.process(name, words[1:]); pid != "" {
		call = "ptrace"
		if name == "kill" {
			call = "kill"
		}
		return call, "process " + pid + " is outside of the sandbox, where programs see only their own"
	}
	for _, p := range powers {
		if slices.Contains(p.programs, name) && (isRoot || !p.root) && (p.words == nil ||
			slices.ContainsFunc(words[1:], func(w string) bool { return slices.Contains(p.words, w) })) {
			return p.call, p.why
		}
	}
	if at, err := hostfacts.Lookup(words[0], r.Dir, r.Env); err == nil && !isRoot {
		if info, err := os.Stat(at); err == nil && info.Mode()&os.ModeSetuid != 0 {
			return "setuid", "set-user-ID programs such as " + name + " gain no rights in a sandbox"
		}
	}
	return "", ""
}

// process returns the number of a process of this machine that the arguments of a program name, or "".
func (r *DeniedRun) process(name string, args []string) string {
	flags := []string{"-p", "--pid", "-pid", "-t", "--target", "--attach"}
	if !slices.Contains(byProcess, name) && !slices.Contains(byNumber, name) {
		return ""
	}
	for i, w := range args {
		value, joined := w, false
		for _, flag := range []string{"--pid=", "-pid=", "--target=", "-p", "-t"} {
			if !joined {
				value, joined = strings.CutPrefix(w, flag)
			}
		}
		if !joined && !slices.Contains(byNumber, name) && (i == 0 || !slices.Contains(flags, args[i-1])) {
			continue
		}
		if value != "" && strings.Trim(value, "0123456789") == "" && r.files.exists("/proc/"+value) {
			return value
		}
	}
	return ""
}
