// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package git finds the paths that git outside of a sandbox obeys in a
// workspace, so that a sandbox can protect them.
//
// Hooks, aliases, filters, pagers and the file system monitor of a repository are
// programs that an innocent "git status" starts. [Open] finds the git directories of
// one work tree. [Repository.Protected] lists the paths outside of them that git
// obeys as well, and [Repository.Shut] the paths inside that stay protected from a
// command that may commit. [Scan] finds the repositories below a directory, within a
// bound, and [Match] any other names, with [Matches] that make later searches cheap. [Take] and
// [Snapshot.Check] find what a command that may commit has planted nevertheless.
//
// The package only reads, never runs git, and decides nothing. It reads git's files
// as git does, byte for byte: a stricter or more generous reader would protect other
// paths than git obeys. Where git's answer depends on facts of a later moment, such
// as the branch in a conditional include, it names all paths. It does not look at
// the programs that a configuration names.
package git
