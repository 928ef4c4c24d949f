// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observer watches the system calls of one command and all its child processes,
// and reports what the sandbox denied.
//
// A seccomp filter hands the calls that change files or name addresses to a
// [Supervisor] and suspends the caller until there is an answer. The supervisor reads the
// arguments, resolves a name as the kernel would for that task, and compares the result
// with the walls: mounts, and the rulings of a [rulings.Judge]. It answers a call that a wall
// denies with the error of that wall, and notes it. It answers every other call with
// "continue", and the kernel and its walls decide. Calls that the filter refuses come here only
// to be noted: they get the filter's answer and never go on. So a program that changes a name
// between this look and the kernel's gains nothing: the walls do not depend on the
// observer. Connecting a socket is the exception, since no mount denies a unix socket:
// the supervisor connects a duplicate of the socket to the address that it has read, and
// never continues. It connects to unix sockets on which tasks listen, and not to those of
// other programs. In the same way it makes what goes where a message says (sendto, sendmsg and
// sendmmsg), from copies. Files with hard links are the other one, where they are protected: no
// wall separates their names, so Landlock denies opening any file for writing, and the
// supervisor hands in those that it has opened and looked at.
//
// The main flow: [Listen] before the launch, the end that it returns goes into the launch
// script, [Inbox.Serve] takes the listener and answers from then on, [Supervisor.Close]
// returns the [Report] when the process tree is dead. After the end of a supervisor the
// kernel fails every call that it would ask about.
//
// The package refuses to widen anything: apart from those files, in places that the policy
// makes writable, it never opens a file for a command, and it never answers "continue" for
// a denied access. It does not see calls by io_uring, writes
// through descriptors that are open already, and calls of programs whose own filter fails
// them first.
package observer
