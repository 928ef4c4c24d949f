// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

// prioUser is PRIO_USER of sys/resource.h and ioprioUser IOPRIO_WHO_USER of
// linux/ioprio.h: all processes of a user.
const (
	prioUser   = 2
	ioprioUser = 3
)

// networkRules are the rules for sockets. Without a network namespace nothing
// keeps a socket from the host's network, so none is made at all, of any family:
// there is no loopback of the command's own either.
func networkRules(open map[string]bool, o Options) []Rule {
	if !o.HostSpaces || o.HostNetwork {
		return socketRules(open, o)
	}
	var rules []Rule
	if open[openUnix] {
		rules = append(rules, Rule{Name: "socket", When: []Cond{num(0, Eq, afUnix)}, Action: Allow, Words: "with family unix"})
	}
	refusal := Rule{Name: "socket", Action: Errno(ePerm)}
	if o.Observe {
		refusal.Action = Notify // the supervisor refuses it, and tells
	}
	rules = append(rules, refusal)
	for _, r := range socketRules(open, Options{}) {
		if r.Name == "socketpair" {
			rules = append(rules, r)
		}
	}
	return rules
}

// sharedRules stand in for the IPC and PID namespaces that a command does not
// have. Objects of System V belong to a user and not to a program, so even
// those that the command makes could be the door to others.
func sharedRules(hostSpaces bool) []Rule {
	if !hostSpaces {
		return nil
	}
	rules := deny("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl",
		"msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink")
	other := func(name, words string, when ...Cond) {
		rules = append(rules, Rule{Name: name, When: when, Action: Errno(ePerm), Words: words})
	}
	const others = "of another task"
	for _, name := range []string{"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"} {
		other(name, others, num(0, Ne, 0))
	}
	other("setpriority", others, num(1, Ne, 0))
	other("setpriority", "of a user", num(0, Eq, prioUser))
	other("ioprio_set", others, num(1, Ne, 0))
	other("ioprio_set", "of a user", num(0, Eq, ioprioUser))
	return rules
}
