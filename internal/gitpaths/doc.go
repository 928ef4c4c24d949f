// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitpaths tells what git, run outside of a sandbox, would obey in a workspace,
// so that a sandbox can keep commands from changing it.
//
// A git repository is a program in waiting: hooks, aliases, filters, pagers and the
// monitor of its file system are started by an innocent "git status". [Open] finds
// the git folders of one work tree, [Repository.Protected] lists the places outside
// of a git folder that are obeyed as well, [Repository.Shut] the places inside of it
// that stay closed when a command may commit. [Scan] finds the repositories below a
// folder, and a [Cache] makes that cheap from the second time on. [Take] and
// [Snapshot.Check] find what a command that may commit has planted nevertheless.
//
// The package only reads, never runs git, and decides nothing: it names places. It
// follows git's own reading of its files, byte for byte, because a reader that is
// stricter or more generous than git protects another place than the one git
// obeys. Where git's answer depends on what cannot be known here, such as the
// branch that a conditional include asks for, it names all of the places.
//
// It does not look at programs that a configuration names: those are wherever the
// person who wrote the configuration put them.
package gitpaths
