// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package execclient is the client of an exec-server: one session, over one connection at a time.
//
// Flow: [Dial] connects and makes a session. One goroutine reads: it hands answers to the calls
// that wait for them, notifications to [Options.OnNotify] in their order, and requests of the
// server to [Options.OnRequest]. When the connection ends, the goroutine connects again and
// resumes the session. Calls of [Client.Repeat] are sent again then; those of [Client.Call] fail,
// because it is not known whether they were performed. When the session cannot be resumed in time,
// every call fails with a [*TransportError].
//
// The package knows the handshake and no other method.
package execclient
