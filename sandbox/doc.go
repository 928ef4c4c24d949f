// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandbox defines sandbox policies: what a process wants to access ([Access]), what
// it may access ([Policy]), what it was denied ([Denial]) and what allows more ([Grant]).
//
// The main flow: make a [Policy] from a preset ([ReadOnly], [WorkspaceWrite],
// [FullAccess]), from entries ([New]), or from its JSON form (package sandbox/wire). Replace
// its special places with [Policy.Bind]. Then ask it about one access ([Policy.Rule]), or
// turn it into lists from which a sandbox can be built ([Policy.Resolve]). Both give the
// same answers. [Policy.With] adds grants.
//
// Paths are compared by their components: /a does not include /ab. An entry applies to its
// path and to everything below it, except where a more specific entry applies. Of two
// entries for the same path the stricter one applies (deny before read before write). A glob
// can only deny, and no entry reopens what it denies.
//
// Every zero value is strict: the zero [Ruling] is [Deny], the zero [Level] is [LevelDeny],
// and the zero [Policy] reads the files of the platform and nothing else.
//
// The package does no I/O, makes no system call and resolves no symbolic link; resolve links
// before you build a sandbox from a policy. It does not approximate: a policy whose places
// are not known is an error and not a wider policy.
package sandbox
