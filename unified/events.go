// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// An Event is what a listener receives: a [Begin], [Delta], [Interaction], [Evicted] or
// [End].
type Event interface{ isEvent() }

func (Begin) isEvent()       {}
func (Delta) isEvent()       {}
func (Interaction) isEvent() {}
func (Evicted) isEvent()     {}
func (End) isEvent()         {}

// SourceStartup is the source of commands of exec_command, as Codex names it.
const SourceStartup = "unified_exec_startup"

// Begin reports that a call starts a command. Exactly one End with the same CallID
// follows, also if the command was not started.
type Begin struct {
	CallID    string
	SessionID int // 0 when the command was not started
	Args      []string
	Command   string
	Dir       string
	Source    string // SourceStartup
}

// Delta is the next piece of a process's output. The Data of all Deltas and the bytes that
// their Missing counts, in order, are the whole output.
type Delta struct {
	CallID    string
	SessionID int
	// Stream is the stream of Data: always standard output on a terminal, and for listeners
	// of compatible tools.
	Stream executor.Stream
	// Offset is that of Data in the output of both streams. If a character came in two
	// parts, bytes of the other stream may lie between them.
	Offset uint64
	// Missing counts the bytes directly before Offset that are in no Delta: they are not
	// retained, or there were too many Deltas.
	Missing uint64
	// Data is at most deltaBytes long and has whole characters, or one byte that is part of
	// none. It is empty if there is only Missing.
	Data []byte
}

// Interaction reports that text was written to a process, or that a call waited for a
// process that still runs.
type Interaction struct {
	CallID    string // of the call that started the process
	SessionID int
	Stdin     string // empty for a call that only waited
}

// Evicted reports that a process is ended, or an ended one forgotten, to make room. Its End
// follows.
type Evicted struct{ Process Info }

// A Status says how a command ended.
type Status string

// The values of Status.
const (
	Completed Status = "completed" // with exit code 0
	Failed    Status = "failed"    // with another one, or with an error
	Declined  Status = "declined"  // the command was not permitted to run
)

// End reports the end of a command.
type End struct {
	CallID    string
	SessionID int
	Status    Status
	ExitCode  int // -1 when the process failed or was not started
	Signal    int
	// Output is the process's whole output, or its first and last half MiB around a line
	// that counts what is omitted. An error follows it on a line of its own.
	Output   []byte
	Duration time.Duration
}
