// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package network decides which hosts a command may reach.
//
// A [Policy] is an immutable snapshot: patterns of hosts that are allowed and denied, and a
// [Mode]. [Policy.Decide] judges a request before any name is resolved, and [Policy.Vet] the
// addresses that a name turned out to have. Each way in which the traffic of a command is
// captured uses these two and has no matching of its own.
//
// A host name arrives as text from an untrusted program. [ParseHost] and [ParseAuthority]
// turn it into a [Host] or reject it. Only the Host is compared, resolved, dialed, sent and
// shown, never the program's spelling.
//
// The package is pure: it opens no file and no connection, resolves no name and reads no
// clock.
package network
