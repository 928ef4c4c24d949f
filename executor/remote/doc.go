// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remote runs commands through an exec-server, on another machine or in this process.
//
// An [Executor] connects when it is needed first. Each command is a process of its session. What
// the server tells of a process is put in order by the numbers of the events, without repetition;
// numbers that do not come, as after a cut of the connection, are read from what the server
// retains. Output that it does not retain any more is counted, and Wait returns a
// [*LostOutputError].
//
// A policy goes to the server as it is written, and the server enforces it. What the protocol
// cannot say is refused with an error before anything runs; nothing is left out silently. The
// package does not judge whether the server can be trusted.
package remote
