// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runs retains runs for their owners: judged and approved commands, which several clients
// of a server start, read, write to and wait for.
//
// A [Table] has the runs of all owners. [Table.Reserve] gives a number, [Run.Start] asks a
// [Prepare] function for a Runner and a Cmd, and has the Runner judge, ask and start. Each run has
// a Runner of its own, so what is approved for the session is approved for that run. A run of
// another owner is as unknown as one that does not exist, and no number is given twice.
//
// A run that has ended is retained with its Result and its output for an hour, the last 64 of an
// owner, and so many may be alive. [Table.Close] ends all of them.
//
// Runs of an owner may share a sandbox by its name, which the first of them opens; later ones join it
// with what that one had, or less.
//
// The package speaks no protocol, and decides nothing about a command.
package runs
