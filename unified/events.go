// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// An Event is something that a listener is told: a [Begin], [Delta], [Interaction],
// [Evicted] or [End].
type Event interface{ isEvent() }

func (Begin) isEvent()       {}
func (Delta) isEvent()       {}
func (Interaction) isEvent() {}
func (Evicted) isEvent()     {}
func (End) isEvent()         {}

// SourceStartup is where commands of exec_command come from, in the words of Codex's
// items.
const SourceStartup = "unified_exec_startup"

// Begin says that a call set out to start a command. Exactly one End with the same
// CallID follows, also when the command could not be started.
type Begin struct {
	CallID    string
	SessionID int // 0 when the command was not started
	Args      []string
	Command   string
	Dir       string
	Source    string // SourceStartup
}

// Delta is the next piece of a process's output. The Data of all pieces and what their
// Missing counts, in order, are the whole output.
type Delta struct {
	CallID    string
	SessionID int
	// Stream is where the data came from: always standard output on a terminal, and
	// for listeners of compatible tools.
	Stream executor.Stream
	// Offset is where Data begins in the output of both streams. Where a character
	// came in two parts, bytes of the other stream may lie between its own.
	Offset uint64
	// Missing counts bytes directly before Offset that are in no Delta: they were no
	// longer retained, or there were too many pieces.
	Missing uint64
	// Data is at most DeltaBytes long and holds whole characters, or one byte that
	// is part of none. Empty when only Missing is told.
	Data []byte
}

// Interaction says that text was written to a process, or that a call waited for one
// that still runs.
type Interaction struct {
	CallID    string // of the call that started the process
	SessionID int
	Stdin     string // empty for a call that only waited
}

// Evicted says that a process was ended, or the end of one forgotten, to make room.
// Its End follows.
type Evicted struct{ Process Info }

// A Status says how an item ended.
type Status string

// The ends of an item.
const (
	Completed Status = "completed" // with exit code 0
	Failed    Status = "failed"    // with another one, or with an error
	Declined  Status = "declined"  // the command was not permitted to run
)

// End says that a command is over.
type End struct {
	CallID    string
	SessionID int
	Status    Status
	ExitCode  int // -1 when the process failed or was not started
	Signal    int
	// Output is the process's whole output, or its first and last half MiB around a
	// line that counts what is missing. An error follows it on a line of its own.
	Output   []byte
	Duration time.Duration
}
