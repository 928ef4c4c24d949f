// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An End says how a run ended, in the words of the JSON form.
type End string

// The ends of a run. Those from EndForbidden on are ends of commands that did not
// run; they stand in events and reports, since such a run has no Result.
const (
	EndExited   End = "exited"    // the command ended by itself, with an exit code
	EndSignaled End = "signaled"  // a signal ended it that was not ours
	EndTimedOut End = "timed_out" // its time was up
	EndCanceled End = "canceled"  // the context ended, or the Runner was closed
	EndOOM      End = "oom"       // it wanted more memory than it may have
	EndPIDs     End = "pids"      // it wanted more processes than it may have
	EndDisk     End = "disk"      // it wanted more disk than it may have
	EndOutput   End = "output"    // it printed more than it may
	EndFailed   End = "failed"    // our own error, or an end that nobody knows

	EndForbidden   End = "forbidden"   // rules or policy forbid it
	EndRefused     End = "refused"     // an approver refused, or nobody could be asked
	EndUnavailable End = "unavailable" // the sandbox cannot be had here
	EndNotFound    End = "not_found"   // there is no such program
)

// ExitTimedOut is the exit code of a command whose time was up, as timeout(1) has
// it.
const ExitTimedOut = 124

// A Result is what is known about a command that ran.
type Result struct {
	// Run is the identity of the run, as in its events.
	Run string

	// Args is the argument vector that ran; of a script it has the shell in front.
	// Dir is the directory it ran in, absolute.
	Args []string
	Dir  string

	// ExitCode is the command's own code; 128+Signal when a signal ended it; 124
	// after a time-out; 128 and the signal that we sent when the run was canceled;
	// -1 when nothing is known.
	ExitCode int
	// Signal is the signal that ended the command, or 0. It is never made up: a
	// command that ended in its own way when it was asked to end has none.
	Signal   int
	End      End
	TimedOut bool
	Duration time.Duration

	// Stdout and Stderr are what was kept of the streams, Output is both in order
	// of arrival. A stream that went to a file is empty.
	Stdout, Stderr, Output Output
	// StdoutErr and StderrErr are *WriterError when a writer of the Cmd did not get
	// everything; else nil. Where one writer is both, so is the error.
	StdoutErr, StderrErr error

	// Survivors are processes that outlived the command. They were ended. The first
	// 20 have their command line. SurvivorsBy says by what means they are found and
	// ended: executor.ByNamespace and the like, empty when that is not known.
	Survivors   []executor.Survivor
	SurvivorsBy string
	// StreamsLeftOpen says that a survivor still held an output stream when the
	// time for its output was over.
	StreamsLeftOpen bool

	// Quarantined are names that must not come into being, such as a .git folder
	// where there was none, and that appeared while the command ran. They were
	// moved away.
	Quarantined []executor.Quarantined

	// Limits says of each limit of Cmd.Resources by what it was held and whether it is
	// known to have been met. Usage is what the command and everything that it
	// started used.
	Limits []executor.Enforced
	Usage  executor.Usage

	// Sandbox is what was enforced, Mode the name of the policy that asked for it
	// ("workspace-write"), Network how far it reached.
	Sandbox executor.Sandbox
	Mode    string
	Network sandbox.Network

	// Attempts are the tries, in order; the last one gave this Result.
	Attempts []Attempt
	// Withheld are the names, never the values, of variables that the command did
	// not get.
	Withheld []string
	// Warnings are sentences about parts of the policy that are likely not meant,
	// such as a home folder that can be written in full, and about what was not
	// granted or not looked at whole.
	Warnings []string

	// DenialsOmitted counts what the command was kept from and Denials leaves out,
	// because there were too many different ones.
	DenialsOmitted int

	denials []sandbox.Denial
}

// An Attempt is one try to run a command.
type Attempt struct {
	Policy sandbox.Policy // with every place in it fixed
	// Code and Signal are what the system said about the end of the process,
	// whatever the Result makes of it: Code is -1 when it said nothing.
	Code     int
	Signal   int
	Duration time.Duration
}

// result turns the last attempt into the result of the run.
func (t *task) result(a *attempt) *Result {
	kept := a.kept
	r := &Result{
		Run: t.id, Args: t.args, Dir: t.dir,
		ExitCode: a.exit.Code, Signal: a.exit.Signal, End: a.end, Duration: a.duration,
		Stdout: newOutput(kept.Stdout), Stderr: newOutput(kept.Stderr), Output: newOutput(kept.Combined),
		StdoutErr: a.ear.trouble(executor.Stdout), StderrErr: a.ear.trouble(executor.Stderr),
		Survivors: a.exit.Survivors, SurvivorsBy: a.exit.SurvivorsBy, StreamsLeftOpen: a.exit.StreamsLeftOpen, Quarantined: a.exit.Quarantined,
		Sandbox: a.exit.Sandbox, Mode: a.policy.Name(), Network: a.policy.Network(),
		Attempts: []Attempt{{Policy: a.policy, Code: a.exit.Code, Signal: a.exit.Signal, Duration: a.duration}},
		Withheld: t.withheld, Warnings: slices.Concat(t.warned, a.exit.Sandbox.Warnings),
	}
	r.TimedOut, r.ExitCode = a.end == EndTimedOut, a.code()
	r.denials, r.DenialsOmitted = a.denials, a.exit.DenialsOmitted
	r.Limits, r.Usage = t.held(a), a.exit.Usage
	return r
}

// code is the exit code of the run, which is not the command's own where we ended it.
func (a *attempt) code() int {
	switch a.end {
	case EndTimedOut:
		return ExitTimedOut
	case EndCanceled:
		if a.exit.Signal != 0 {
			return 128 + a.exit.Signal
		}
		return 128 + a.exit.LastSignal
	case EndOutput:
		if a.exit.Code < 0 {
			return 128 + a.exit.LastSignal
		}
	}
	return a.exit.Code
}

// Denials returns what the command was kept from, each with the rule that kept it
// and the smallest grant that would have let it through, as far as there is one. Where
// an observer ran (Sandbox.Observed) these are facts, and an empty list means that
// nothing was refused. A denial whose source is sandbox.Guessed is a guess from the
// exit code and the words of the output: it may be about something else, and nothing
// is decided by it. Without an observer an empty list means that nothing is known.
func (r *Result) Denials() []sandbox.Denial { return r.denials }

// Err returns nil for a command that exited with code 0, a *TimeoutError for one
// whose time was up, and an *ExitError for all others.
func (r *Result) Err() error {
	switch {
	case r.TimedOut:
		return &TimeoutError{Result: r}
	case r.ExitCode != 0:
		return &ExitError{Result: r}
	}
	return nil
}

// name returns the program's name for messages.
func (r *Result) name() string {
	if len(r.Args) == 0 {
		return "command"
	}
	return path.Base(r.Args[0])
}

// Report returns the result in the form that scripts and agents read.
func (r *Result) Report() event.Report {
	return event.Report{
		Run: r.Run, Args: r.Args, Dir: r.Dir, ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut,
		End: string(r.End), Duration: r.Duration,
		Stdout: r.Stdout.captured(), Stderr: r.Stderr.captured(), Output: r.Output.captured(),
		Sandbox: event.Sandbox{
			Mode: r.Mode, Mechanism: r.Sandbox.Mechanism, Network: r.Network.String(),
			Level: r.Sandbox.Level, Observed: r.Sandbox.Observed, Weaker: r.Sandbox.Weaker,
		},
		Attempts: len(r.Attempts), Denials: r.denials, DenialsOmitted: r.DenialsOmitted, Survivors: len(r.Survivors),
		SurvivorList: r.Survivors, SurvivorsBy: r.SurvivorsBy,
		StreamsLeftOpen: r.StreamsLeftOpen, Quarantined: r.Quarantined, Withheld: r.Withheld, Warnings: r.Warnings,
		Limits: r.Limits, Usage: r.Usage,
	}
}

// MarshalJSON returns the object of [event.Report].
func (r *Result) MarshalJSON() ([]byte, error) { return r.Report().MarshalJSON() }

// Output is what was kept of a stream. The zero Output is that of a stream on
// which nothing came.
type Output struct {
	// Total counts the bytes that came, Omitted those of them that were not kept.
	Total, Omitted uint64

	kept output.Snapshot
}

func newOutput(s output.Snapshot) Output {
	return Output{Total: s.Total, Omitted: s.Omitted, kept: s}
}

// Bytes returns what was kept, as it came. When bytes were omitted, what came
// before and what came after them follow each other without a mark.
func (o Output) Bytes() []byte { return o.kept.Bytes() }

// Head returns the beginning of what was kept, and Tail what follows it behind a gap of
// Omitted bytes. Without a gap the two follow each other directly. They must not be
// written to.
func (o Output) Head() []byte { return o.kept.Head }

// Tail is the end of what was kept, see Head.
func (o Output) Tail() []byte { return o.kept.Tail }

// String returns what was kept as text for reading: bytes that are not UTF-8 are
// replaced, and where bytes were omitted between a beginning and an end, a line
// says how many. A character that the gap cut in two counts as omitted.
func (o Output) String() string {
	head, tail, omitted := mend(o.kept)
	marker := ""
	if omitted > 0 && len(tail) > 0 {
		marker = output.Marker(omitted)
	}
	var b strings.Builder
	b.Grow(len(head) + len(marker) + len(tail))
	for i, part := range [][]byte{head, tail} {
		if i == 1 {
			b.WriteString(marker)
		}
		if utf8.Valid(part) {
			b.Write(part)
		} else {
			b.WriteString(text.Decode(part, text.DecodeOptions{}))
		}
	}
	return b.String()
}

// captured returns the stream for a report.
func (o Output) captured() event.Captured {
	head, tail, _ := mend(o.kept)
	c := event.Captured{
		Text: o.String(), Total: o.Total, Omitted: o.Omitted,
		Binary: !utf8.Valid(head) || !utf8.Valid(tail),
	}
	if c.Binary {
		c.Data = o.Bytes()
	}
	return c
}

// mend takes the parts of a character that the gap cut off at its edges.
func mend(s output.Snapshot) (head, tail []byte, omitted uint64) {
	head, tail, omitted = s.Head, s.Tail, s.Omitted
	if omitted == 0 {
		return s.Bytes(), nil, 0
	}
	var whole text.Splitter
	head = whole.Push(head)
	for len(tail) > 0 && len(s.Tail)-len(tail) < utf8.UTFMax-1 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	omitted += uint64(len(s.Head) - len(head) + len(s.Tail) - len(tail))
	return head, tail, omitted
}
