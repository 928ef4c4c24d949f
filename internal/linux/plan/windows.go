// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/sallyport-dev/sallyport/sandbox"

// windowsRefusal returns what Windows lacks for a policy that confines a command. There a
// job object holds the process tree together. A job is no wall: it ends the tree, and
// denies it to log its user off and to change the settings of the screen.
//
// No mechanism enforces a policy exactly:
//   - A restricted token takes groups and privileges away. The command may still write what
//     the user may write, unless the access lists of the user's files are changed first;
//     that change outlives the command and affects every program.
//   - Low integrity denies writes to what is labeled medium, which is nearly everything.
//     But what is labeled low stays writable, such as AppData\LocalLow and what browsers and
//     earlier commands have left, and the network is not confined at all.
//   - An app container has a network wall, but hides nearly all files until their access
//     lists name it.
//
// So every policy that confines anything is refused, with what it lacks first.
func windowsRefusal(r *Request) error {
	no := func(need, have string) error {
		return unsupported(need, have, "run it in WSL2 or on a Linux machine, or with full access")
	}
	denies := r.Root == sandbox.LevelDeny || len(r.Patterns) > 0
	for _, u := range r.Rules {
		denies = denies || u.Level == sandbox.LevelDeny
	}
	switch {
	case r.Spec.Policy.Mode() != sandbox.Managed:
		return no("a private network without a sandbox for files (external-sandbox)",
			"Windows gives an ordinary user no private network")
	case r.network() != sandbox.NetworkHost:
		return no("network isolation",
			"Windows has none for programs of an ordinary user that read this user's files")
	case denies:
		return no("files that a command cannot read",
			"on Windows that takes changes to the access lists of this user's own files")
	case r.Root == sandbox.LevelWrite && len(r.Rules) == 0:
		return no("process isolation",
			"on Windows a command reaches every other process of the same user")
	}
	return no("files that a command cannot write",
		"on Windows a restricted token or low integrity leaves some of them writable unless access lists are changed")
}
