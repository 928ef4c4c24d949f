// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client has an exec-server run commands as "sallyport run" does there: the server's
// settings, rules and sandbox apply, the server asks the client for approvals, and the result says what
// the server knows. It uses the run/* methods of the protocol.
//
// To judge commands in this process and only run them on the server, use a [sallyport.Runner] with an
// Executor of package executor/remote.
package client
