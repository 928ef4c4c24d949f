// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protect turns a resolved policy and what exists on disk into rules, and protects
// names that do not exist yet while one command runs.
//
// [New] inspects the paths of a policy and the repositories in its writable roots. It
// returns a [Protection] with the rules for a plan. Given a guard.Protector it also claims
// the protected names that are missing, so that the command cannot create them.
// [Protection.Finish] looks once more when no process of the command is left, and moves to
// quarantine what must not have been created. For sandboxes that judge by name there is
// [ByName].
//
// The package mounts nothing and plans nothing. A path that a command could redirect is
// refused; it never guesses where such a path leads.
//
// A [Judge] decides about what a command wants to do to files where no mount does: what the
// policy says about names that did not exist when the command began.
package protect
