// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

// spaces are the calls that are refused where a command has no namespaces.
func spaces() []answer {
	none := Options{HostSpaces: true}
	host := Options{HostSpaces: true, HostNetwork: true}
	opened := Options{HostSpaces: true, Allow: []string{"unix", "netlink", "icmp"}}
	rows := []answer{
		{"tcp without namespaces", "socket", a(2, 1, 0), "EPERM", "", none},
		{"udp6 without namespaces", "socket", a(10, 2, 17), "EPERM", "", none},
		{"route netlink without namespaces", "socket", a(16, 3, 0), "EPERM", "", none},
		{"packet without namespaces", "socket", a(17, 3, 0), "EPERM", "", none},
		{"unix without namespaces", "socket", a(1, 1, 0), "EPERM", "", none},
		{"tcp without namespaces, garbage above", "socket", a(garbage|2, 1, 0), "EPERM", "", none},
		{"stream pair without namespaces", "socketpair", a(1, 1, 0), "allow", "", none},
		{"datagram pair without namespaces", "socketpair", a(1, 2, 0), "EPERM", "", none},
		{"inet pair without namespaces", "socketpair", a(2, 1, 0), "EAFNOSUPPORT", "", none},
		{"opened unix without namespaces", "socket", a(1, 1, 0), "allow", "", opened},
		{"opened netlink without namespaces", "socket", a(16, 3, 15), "EPERM", "", opened},
		{"opened icmp without namespaces", "socket", a(2, 2, 1), "EPERM", "", opened},
		{"tcp on the host's network", "socket", a(2, 1, 0), "allow", "", host},
		{"raw on the host's network", "socket", a(2, 3, 0), "EPERM", "", host},
		{"unix on the host's network", "socket", a(1, 1, 0), "EPERM", "", host},
		{"ptrace without namespaces", "ptrace", nil, "EPERM", "", none},
		{"own limit", "prlimit64", a(0, 7, 1, 1), "allow", "", none},
		{"limit of another", "prlimit64", a(1234, 7, 1, 1), "EPERM", "", none},
		{"own niceness", "setpriority", a(0, 0, 5), "allow", "", none},
		{"niceness of another", "setpriority", a(0, 1234, 5), "EPERM", "", none},
		{"niceness of a user", "setpriority", a(2, 0, 5), "EPERM", "", none},
		{"own disk class", "ioprio_set", a(1, 0, 5), "allow", "", none},
		{"disk class of another", "ioprio_set", a(1, 1234, 5), "EPERM", "", none},
		{"disk class of a user", "ioprio_set", a(3, 0, 5), "EPERM", "", none},
	}
	for _, call := range []string{"sched_setaffinity", "sched_setattr", "sched_setparam",
		"sched_setscheduler"} {
		rows = append(rows,
			answer{call + " of oneself", call, a(0), "allow", "", none},
			answer{call + " of another", call, a(1234), "EPERM", "", none})
	}
	for _, call := range []string{"shmget", "shmat", "semget", "semop", "msgget", "msgsnd", "msgrcv",
		"mq_open", "mq_unlink"} {
		rows = append(rows,
			answer{call + " without namespaces", call, nil, "EPERM", "", none},
			answer{call + " in an own namespace", call, nil, "allow", "", Options{OwnPID: true}})
	}
	return rows
}
