// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package execserver serves the exec-server protocol: processes for clients on other machines,
// or in other programs, that decide themselves what runs.
//
// A [Server] has sessions, and a session has processes. [Server.Serve] speaks with one client
// on a stream: its first request makes a session or resumes one, and every other request is
// about that session. A connection that is lost leaves its session and the processes for a
// client with the same credential to resume.
//
// Every event of a process (output, exit, end) gets the next number of that process and is
// queued for the connection under one lock, so events arrive in the order of their numbers. A
// client that does not read fills the queue of its connection; the processes of its session
// then wait in their writes, and no other session does.
//
// The requests of a connection are performed in their order, by one goroutine. None of them
// waits there, except for the start of the very process that it is about: a read that waits
// is put aside, input is queued, and starts run beside.
//
// What a process may access is what its client says, built by the executor of this machine.
// What this version does not support is refused by name; methods that are not served have the
// error that clients know. Nothing is asked and no rule is consulted: that is for the client.
//
// Runs are the exception. They are judged and approved by the Runners of package runs, belong to the
// credential of the client, and go on without it. Their questions are requests of the server to
// the client that started them.
package execserver
