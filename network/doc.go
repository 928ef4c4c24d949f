// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package network decides which hosts a command reaches.
//
// A [Policy] is an immutable snapshot: patterns of hosts that are allowed and denied, and a
// [Mode]. [Policy.Decide] judges a request before any name is resolved, and [Policy.Vet] the
// addresses that a name turned out to have. Each way in which the traffic of a command is
// captured uses these two and has no matching of its own.
//
// What was asked for arrives as text of a program that is not trusted. [ParseHost] and
// [ParseAuthority] make a [Host] of it or refuse it; a Host is what is compared, resolved,
// dialed, sent and shown, never the spelling of the program.
//
// The package is pure: it opens no file and no connection, resolves no name and reads no
// clock.
package network
