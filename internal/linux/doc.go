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
//
// Where this program may not make user namespaces itself but bubblewrap may, it starts commands through that.
// [FindBubblewrap] looks for a bubblewrap that only root can change, and runs it once with every option that
// a machine may refuse. For a command, [OpenBubblewrap] replaces the standard descriptors by pipes and opens
// the pipe of bubblewrap's status. When the launcher has started it, [BubblewrapMonitor.Follow] reads that
// status, signals the command past bubblewrap's own processes, and names what the command leaves behind.
// Package plan writes bubblewrap's options. No other program is run than the one that was found, and never
// one that PATH names.
package linux
