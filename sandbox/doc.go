// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandbox holds the words of confinement: what a process wants to
// touch ([Access]), what it may touch ([Policy]), what it was kept from
// ([Denial]) and what would open the way ([Grant]).
//
// The main flow: make a [Policy] from a preset ([ReadOnly], [WorkspaceWrite],
// [FullAccess]), from entries ([New]) or from the wire ([ParseLegacy],
// [ParseProfile]); fix its special places with [Policy.Bind]; then either ask
// it about one access ([Policy.Rule]) or turn it into plain lists for whoever
// builds the walls ([Policy.Resolve]). Both give the same answers. After a run,
// [Cure] turns denials into the fewest grants, and [Policy.With] applies them.
//
// Paths are matched by clean slash-separated components, never by prefix of
// the text: /a does not cover /ab. An entry holds for its path and everything
// below it, until a more specific entry; of two entries for the same path the
// stricter holds (deny before read before write). A glob can only deny, and
// what it denies no entry reopens.
//
// Every zero value is closed: a zero [Ruling] is [Deny], a zero [Level] is
// [LevelDeny], a zero [Policy] reads the platform's own files and nothing else.
//
// The package does no I/O, makes no system call and resolves no symbolic link;
// whoever builds walls from a policy resolves links first. It refuses to
// approximate: a policy that cannot be expressed in a wire form, or whose
// places are not known, is an error and not a wider policy.
package sandbox
