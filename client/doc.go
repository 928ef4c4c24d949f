// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client has an exec-server run commands as "sallyport run" does there: the settings, rules and
// sandbox of the server count, what needs an approval is asked of the client, and the result says what
// the server knows. It uses the run/* methods of the protocol.
//
// To have commands judged here and only run there, use a [sallyport.Runner] with an Executor of package
// executor/remote.
package client
