// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits enforces resource limits on process trees and measures what they
// use.
//
// [New] takes the limits of one command and makes a control group for them in the
// background. When the sandbox level is known, [Bounds.At] decides what enforces each
// limit (a control group, a resource limit, processor affinity, or a watch that
// measures the tree again and again) and returns what the launch needs for that as
// data. [Bounds.Watch] starts the watch when the command has started, and
// [Bounds.Finish] reports what was used and which limit was reached. [Groups] finds
// out which control groups this machine allows; a host has one.
//
// A limit that nothing can enforce is refused with a *sandbox.UnsupportedError. The
// package never uses a control group twice, never touches a group that is not its own,
// never moves a process that it was not told to move (with one exception, see
// [Groups]), and never raises an existing limit. On systems other than
// Linux every limit is refused.
package limits
