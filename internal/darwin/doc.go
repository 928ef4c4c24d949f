// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package darwin starts commands on macOS under a sandbox policy.
//
// [Host.Start] gathers what is at the paths of the policy, has package plan write a Seatbelt
// profile, and starts sandbox-exec with it in a process group of its own. With full access it
// starts the command itself. Seatbelt matches by name, so the profile also covers names that
// do not exist yet, and nothing has to be looked at when the command has ended.
//
// The package refuses what Seatbelt cannot enforce with a *sandbox.UnsupportedError.
package darwin
