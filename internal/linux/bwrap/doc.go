// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bwrap starts commands through the bubblewrap program of a Linux system, where
// this program may not make user namespaces itself but bubblewrap may.
//
// [Find] looks for a bubblewrap that only root can change, and runs it once with every
// option that a machine may refuse. For a command, [Open] replaces the standard
// descriptors by pipes and opens the pipe of bubblewrap's status. When the launcher has
// started bubblewrap, [Monitor.Follow] reads that status, signals the command past
// bubblewrap's own processes, and names what the command leaves behind.
//
// The package decides nothing about policies; package plan writes bubblewrap's options. It
// runs no other program than the one that it found, and never one that PATH names.
package bwrap
