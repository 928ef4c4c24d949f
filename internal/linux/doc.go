// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package linux starts commands on Linux under a sandbox policy.
//
// [Host.Start] lists all steps: for each sandbox level that is accepted, best first,
// it gathers the facts about the machine and the files that the policy names, has package
// plan make a plan of them, and has package launch perform it. A launch that fails tells
// what the machine refuses; the next plan does without it, or the next level is tried. A
// path that changes between the look and the launch stops the launch. [Child] is the
// started command.
//
// The package decides nothing: the policy says what a command may access, and the plan how
// that is enforced. It reads no output. What it cannot enforce it refuses with a
// *sandbox.UnsupportedError; it never runs a command with less.
package linux
