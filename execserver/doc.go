// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package execserver is an exec-server in this process: what "sallyport exec-server" is in a process of its
// own, without a listener.
//
// A [Server] serves clients of the exec-server protocol on connections of the caller's, by [Server.Serve],
// and in memory, by [Server.Dial]. The commands of a Runner go there with package executor/remote, and
// judged runs with package client:
//
//	server := execserver.New(execserver.Options{})
//	defer server.Close()
//	e := remote.New(remote.Options{Dial: server.Dial})
//
// What a process may access is what its client says, within the managed configuration of this machine; no
// other rule is consulted and nothing is asked. Judged runs (run/*) follow the settings, rules and
// approvals of this user, as those of "sallyport run" do. docs/exec-server.md and docs/protocol.md have the
// details.
package execserver
