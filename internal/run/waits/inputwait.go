// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waits finds out whether a process tree waits for input now, and which
// ports it listens on.
//
// [Terminal] and [Pipe] take one look at the kernel's view of the processes. They never
// block, read nothing from the terminal or the pipe and keep no descriptor. [Await]
// repeats a look when an answer is likely: shortly after output has ended.
// [ListeningPorts] reads the kernel's tables of sockets.
//
// # When the answer is yes
//
// A tree on a terminal waits if, at one moment, every thread of the terminal's foreground
// process group is asleep or stopped, one of them is blocked in a read of the terminal,
// or in a poll, select or epoll call that has the terminal in its set for reading, and
// nothing is left to read in the terminal, not even in the buffers that lead there. That
// it is one moment is proved: the kernel counts how often each thread gave up its
// processor, and the counts before and after the look must be equal. Part of a line does
// not count as unread in canonical mode, because the program does not get it.
//
// For a pipe the rule is the same with the process group of the reader.
//
// A poll, select or epoll call, or a read of a terminal with VTIME, that ends by a timer
// counts if its timeout is [ShortestTimedWait] or more, and Look.Timed is set. A shorter
// one is a loop that does other work and polls the terminal. [Await] wants to see it twice.
//
// # Where the answer misleads
//
// The look sees which thread waits, not why. These programs wait for the terminal and for
// something else at once, and are reported as waiting while that works:
//   - programs that pass a terminal on (script, unbuffer): the program inside has a
//     terminal of its own;
//   - ssh and other remote shells: the remote end is invisible;
//   - programs that redraw by a timer (top, watch with keys): Timed is set;
//   - event loops with work to come (a node prompt with a pending timer): Timed is
//     set for the loop's own timers, and is not for alarm signals, timer descriptors,
//     sockets or children.
//
// These are reported as not waiting although they may be: terminal multiplexers (tmux,
// screen), whose server reads the terminal from another session; programs that read by
// io_uring or through an epoll descriptor inside another one; programs with other
// threads that never rest.
//
// # What it refuses to do
//
// It does not guess. If the kernel does not tell (another user's process, one that keeps
// its memory private, a process that may not be traced, a 32-bit program, a set of
// descriptors beyond the bounds), Look.Known is false and Look.Why says why. Systems other
// than Linux do not tell anything. Everything that comes from a process (names, memory,
// descriptors) is hostile: it is bounded, parsed strictly, and given up on if the process
// changes or is replaced meanwhile. A hostile process can claim to wait, by waiting. It
// can make the look block only by memory or an epoll set that it keeps faulting, for
// which it needs a file system or a fault handler of its own.
package waits

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
