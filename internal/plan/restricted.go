// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/sallyport-dev/sallyport/sandbox"

// elsewhere is what helps a policy that Windows cannot enforce.
const elsewhere = "run it in WSL2 or on a Linux machine, or with full access"

// planWindows plans one command for Windows, where a job object holds its tree
// together. A job is no wall: it ends the tree, and keeps it from logging
// its user off and from the settings of the screen.
//
// What could be a wall is not one that a policy can be held to exactly:
//   - A restricted token takes groups and privileges away. What the user may
//     write it may write too, unless the access lists of the user's files are
//     changed first, which outlives the command and is seen by everybody.
//   - Low integrity keeps it from writing to what is labeled medium, which is
//     nearly everything. But what is labeled low stays writable, such as
//     AppData\LocalLow and what browsers and earlier commands have left, and the
//     network is not confined at all.
//   - An app container has a network wall, but hides nearly all files until
//     their access lists name it.
//
// So every policy that confines anything is refused, with what it lacks first.
func planWindows(r *Request) (*Plan, error) {
	no := func(need, have string) (*Plan, error) {
		return nil, &sandbox.UnsupportedError{Need: need, Have: have, Hint: elsewhere}
	}
	switch {
	case r.unconfined():
		return &Plan{Level: LevelNone, Mechanism: []string{"job-object"}, Exec: direct(r)}, nil
	case r.Spec.Policy.Mode() != sandbox.Managed:
		return no("a network of its own for a command that is confined elsewhere", "Windows gives an ordinary user no private network")
	case r.network() != sandbox.NetworkHost:
		return no("a wall around the network", "Windows gives an ordinary user none for programs that read this user's files")
	}
	for _, u := range r.Rules {
		if u.Level == sandbox.LevelDeny {
			return no("files that a command cannot read", "on Windows that takes changes to the access lists of this user's own files")
		}
	}
	if r.Root == sandbox.LevelDeny || len(r.Patterns) > 0 {
		return no("files that a command cannot read", "on Windows that takes changes to the access lists of this user's own files")
	}
	if r.Root == sandbox.LevelWrite && len(r.Rules) == 0 {
		return no("a wall around processes", "on Windows a command reaches every other process of the same user")
	}
	return no("files that a command cannot write", "on Windows a restricted token or low integrity leaves some of them writable unless access lists are changed")
}
