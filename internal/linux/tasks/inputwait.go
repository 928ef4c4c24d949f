// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import "time"

// ShortestTimedWait is the shortest timeout of a poll, select or epoll call that counts
// as waiting for input: below it are loops of games and spinners, above it prompts with a
// hook (100 ms in interpreters with a graphical toolkit) and displays that redraw (seconds).
const ShortestTimedWait = 50 * time.Millisecond

// LongestDelay is the longest timeout by which programs pause between two steps and take
// input meanwhile. A wait with a longer one is a prompt with a time limit, or one that redraws.
const LongestDelay = time.Second

// A Kind is how the waiting program takes its input. The zero value is no kind: no
// program waits, or nothing is known.
type Kind string

// The kinds of waiting.
const (
	// Line is a whole line: a terminal in canonical mode that echoes, or a pipe, which
	// has no modes.
	Line Kind = "line"
	// Key is single keys: a terminal whose canonical mode is off, as in editors and
	// prompts with line editing.
	Key Kind = "key"
	// Password is a line that is not shown: canonical mode with ECHO off.
	Password Kind = "password"
)

// A Look is the answer of one look. The zero value says that nothing is known.
type Look struct {
	// Waiting is true if a process waits for input and no other works. It is never true
	// without Known.
	Waiting bool
	// Known is false if the kernel did not tell enough to decide; Why has the reason.
	Known bool
	// Why is the reason for an answer that is not yes, a sentence; empty with Waiting.
	// Names of programs in it are quoted.
	Why string
	// Kind is how the input is taken; empty unless Waiting.
	Kind Kind
	// PID is the waiting process as this process sees it; 0 unless Waiting.
	PID int
	// Program is the kernel's name of the waiting process, at most 64 bytes of any value:
	// quote it before showing it. Empty unless Waiting.
	Program string
	// Timed says that the wait also ends by a timer, not before [ShortestTimedWait].
	Timed bool
	// Timeout is how long the wait lasts at most, from its begin; 0 unless Timed.
	Timeout time.Duration
}

// unknown is the answer that the kernel does not tell.
func unknown(why string) Look { return Look{Why: why} }
