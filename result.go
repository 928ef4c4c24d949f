// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/records"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An End says how a run ended, in the words of the JSON form.
type End string

// The ends of a run. Those from EndForbidden on are ends of commands that did not
// run; they are in events and in the results that the command line prints.
const (
	EndExited   End = "exited"    // the command ended by itself, with an exit code
	EndSignaled End = "signaled"  // a signal ended it that was not ours
	EndTimedOut End = "timed_out" // its time limit was exceeded
	EndCanceled End = "canceled"  // the context ended, or the Runner was closed
	EndOOM      End = "oom"       // its memory limit was exceeded
	EndPIDs     End = "pids"      // its process limit was exceeded
	EndDisk     End = "disk"      // its disk limit was exceeded
	EndOutput   End = "output"    // its output limit was exceeded
	EndFailed   End = "failed"    // an error of ours, or an unknown end
	// EndLost says that the machine that ran the command was lost: what became of it is not known.
	EndLost End = "lost"

	EndForbidden   End = "forbidden"   // rules or policy forbid it
	EndRefused     End = "refused"     // an approver refused, or none is configured
	EndUnavailable End = "unavailable" // the sandbox is not available on this machine
	EndNotFound    End = "not_found"   // the program does not exist
)

// ExitTimedOut is the exit code of a command that exceeded its time limit, as with
// timeout(1).
const ExitTimedOut = 124

// A Result is what is known about a command that ran. Its JSON form is the object that
// `sallyport run --json` prints; decoding that object gives the Result back, except for
// the types of StdinErr, StdoutErr and StderrErr, the policies of Attempts, survivors beyond the 20th,
// of which only the number is kept, and which streams of First lack bytes.
type Result struct {
	// Run is the identity of the run, as in its events.
	Run string
	// CallerID is that of the Cmd; empty for none.
	CallerID string

	// Args is the argument vector that ran, with the shell in front for a script.
	// Dir is the directory it ran in, absolute.
	Args []string
	Dir  string

	// ExitCode is the command's own code; 128+Signal when a signal ended it; 124
	// after a timeout; 128 and the signal that we sent when the run was canceled;
	// -1 when nothing is known.
	ExitCode int
	// Signal is the signal that ended the command, or 0. A command that handled the
	// signal that it was stopped with and exited has none.
	Signal   int
	End      End
	TimedOut bool
	Duration time.Duration

	// Stdout and Stderr are the retained output of each stream, Output that of both in
	// order of arrival. A stream that went to a file is empty.
	Stdout, Stderr, Output Output
	// StdinErr is a *ReaderError when the command did not get all of Cmd.Stdin, because that could not
	// be read; nil when it did, and when it read no further. A command that has a file itself reads it.
	StdinErr error
	// StdoutErr and StderrErr are *WriterError when a writer of the Cmd did not get
	// everything; else nil. A writer that serves both streams has the same error in both.
	StdoutErr, StderrErr error

	// Survivors are processes that outlived the command. They were ended. The first
	// 20 have their command line. SurvivorsBy says how they are found and ended:
	// executor.ByNamespace and the like, empty when that is not known.
	Survivors   []executor.Survivor
	SurvivorsBy string
	// StreamsLeftOpen says that a survivor still held an output stream when the
	// time for draining it was over.
	StreamsLeftOpen bool

	// Quarantined are protected names, such as a .git directory where there was none,
	// that appeared while the command ran. They were moved to quarantine.
	Quarantined []executor.Quarantined

	// HardLinks are files that the command opened for writing although they have further
	// names, which may lie outside of its workspace: what it wrote is seen there, too.
	// Names that the command itself made do not count. HardLinksOmitted counts those that
	// found no room.
	HardLinks        []executor.HardLink
	HardLinksOmitted int

	// OwnershipIgnored counts changes of the owner or group of a file that succeeded without
	// effect; see Cmd.OwnershipErrors.
	OwnershipIgnored int

	// NetworkDenials are the hosts that the proxy of a managed network refused, at most
	// executor.MaxNetworkDenials. They are among Denials as well.
	NetworkDenials []executor.NetworkDenial
	// NetworkHosts are the hosts that the command reached through that proxy, with what went there
	// and came back: at most executor.MaxNetworkHosts.
	NetworkHosts []executor.NetworkHost
	// NetworkFailures are the hosts that the policy of that proxy allows and that it could not reach, at most
	// executor.MaxNetworkFailures.
	NetworkFailures []executor.NetworkFailure

	// New are files that other programs run or obey later, such as .vscode/tasks.json in a
	// workspace, and git repositories, that appeared while the command ran. They are still
	// there.
	New []executor.New

	// Stage is the stage that the command had, with the changes that it holds; nil for none. See Changes.
	Stage *executor.Staged

	// Recording is what Cmd.Record made; nil for none.
	Recording *event.Recorded

	// Limits says how each limit of Cmd.Resources was enforced and whether it is known
	// to have been reached. Usage is what the command's process tree used.
	Limits []executor.Enforced
	Usage  executor.Usage

	// Rule is the rule that decided that the command runs or where; nil if none did.
	Rule *Rule

	// Approvals are the questions that were decided, in their order.
	Approvals []event.ApprovalDecided
	// Granted are the accesses that the sandbox denies and that an answer opened while the command ran, see
	// Cmd.AskWrites: at most 1000.
	Granted []event.Granted
	// Notices say what did not happen although it was asked about: a command that was not run
	// again, a rule that was not remembered, a variable that the managed network sets.
	Notices []string
	// First is the result of the first attempt of a command that was run again; nil for others.
	First *Result

	// Sandbox is the policy that was asked for, by name, and what was enforced.
	Sandbox event.Sandbox

	// Attempts are the executions of the command, in order; the last one gave this
	// Result.
	Attempts []Attempt
	// Withheld are the names, never the values, of variables that the command did
	// not get.
	Withheld []string
	// Warnings are sentences about parts of the policy that are likely not meant,
	// such as a writable home directory, and about grants and searches that are
	// incomplete.
	Warnings []string

	// DenialsOmitted counts denials that are not in Denials because there were too
	// many different ones.
	DenialsOmitted int

	// Error says why the command did not run or why its end is not known. Run and Start
	// leave it empty, because they return an error; it is for the JSON form.
	Error string

	denials []sandbox.Denial
}

// A Rule is a rule of Runner.Rules that decided about a command.
type Rule = event.Rule

// An Attempt is one execution of a command.
type Attempt struct {
	Policy sandbox.Policy // with every place in it fixed
	// Code and Signal are what the system said about the end of the process,
	// whatever the Result makes of it: Code is -1 when it said nothing.
	Code     int
	Signal   int
	Duration time.Duration
}

// result makes the result of the run from its last attempt.
func (x *execution) result(a *attempt) *Result {
	kept, exit := a.kept, a.exit
	attempts := []Attempt{{Policy: a.spec.Policy, Code: exit.Code, Signal: exit.Signal, Duration: a.duration}}
	if x.first != nil {
		attempts = append(slices.Clone(x.first.Attempts), attempts...)
	}
	return &Result{
		Run: x.id, CallerID: x.callerID, Args: x.args, Dir: x.dir,
		ExitCode: a.code(), Signal: exit.Signal, End: a.end, TimedOut: a.end == EndTimedOut,
		Duration: a.duration,
		Stdout:   newOutput(kept.Stdout), Stderr: newOutput(kept.Stderr), Output: newOutput(kept.Combined),
		StdinErr: a.inputErr(), StdoutErr: a.fanout.writerErr(executor.Stdout),
		StderrErr: a.fanout.writerErr(executor.Stderr),
		Survivors: exit.Survivors, SurvivorsBy: exit.SurvivorsBy, StreamsLeftOpen: exit.StreamsLeftOpen,
		Quarantined: exit.Quarantined,
		HardLinks:   exit.HardLinks, HardLinksOmitted: exit.HardLinksOmitted,
		NetworkDenials: exit.NetworkDenials, NetworkHosts: exit.NetworkHosts,
		NetworkFailures: exit.NetworkFailures, OwnershipIgnored: exit.OwnershipIgnored, New: exit.New,
		Stage: exit.Stage, Limits: x.enforced(a), Usage: exit.Usage,
		Rule: x.rule, Sandbox: x.sandboxOf(a.spec.Policy, exit.Sandbox),
		Attempts: attempts, Approvals: x.approvals, Granted: a.accesses.Granted(), First: x.first,
		Notices:  append(append(x.noted, x.replaced(a)...), a.accesses.Notices()...),
		Withheld: x.withheld, Warnings: slices.Concat(x.warned, exit.Sandbox.Warnings),
		denials: a.denials, DenialsOmitted: exit.DenialsOmitted,
	}
}

// sandboxOf describes the sandbox of an attempt.
func (x *execution) sandboxOf(p sandbox.Policy, s executor.Sandbox) event.Sandbox {
	return event.Sandbox{Mode: p.Name(), Network: p.Network(), Apart: x.apart, Sandbox: s}
}

// code is the exit code of the run. It differs from the command's own where we ended
// the command.
func (a *attempt) code() int {
	switch {
	case a.end == EndTimedOut:
		return ExitTimedOut
	case a.end == EndCanceled && a.exit.Signal != 0:
		return 128 + a.exit.Signal
	case a.end == EndCanceled, a.end == EndOutput && a.exit.Code < 0:
		return 128 + a.exit.LastSignal
	}
	return a.exit.Code
}

// Denials returns the accesses that the sandbox denied, each with the rule that denied
// it and the narrowest grant that would allow it, if there is one. After a failure those
// that are likely its cause come first, which is a guess. With an observer
// (Sandbox.Observed) these are facts, and an empty list means that nothing was denied.
// A denial whose source is sandbox.Guessed is inferred from the exit code and the
// output; nothing is decided by it. Without an observer an empty list means that
// nothing is known.
func (r *Result) Denials() []sandbox.Denial { return r.denials }

// SetDenials replaces the denials of a Result that is made or shortened by hand, and how
// many more were omitted.
func (r *Result) SetDenials(ds []sandbox.Denial, omitted int) {
	r.denials, r.DenialsOmitted = ds, omitted
}

// Err returns a *TimeoutError for a command that exceeded its time limit and an *ExitError for one
// that exited with another code than 0. For all others it is the first of StdinErr, StdoutErr and
// StderrErr, as with os/exec, and nil if there is none: then all of the input was there for the command,
// and all of the output reached its writers.
func (r *Result) Err() error {
	switch {
	case r.TimedOut:
		return &TimeoutError{Result: r}
	case r.ExitCode != 0:
		return &ExitError{Result: r}
	}
	return cmp.Or(r.StdinErr, r.StdoutErr, r.StderrErr)
}

// ResultOf returns one form for all that can come of a run: res if there is one, the Result in a
// [*TimeoutError] or [*ExitError], and else one made of err: with the exit code -1, its End, and
// its sentence as what came on standard error. Without either it is nil.
func ResultOf(res *Result, err error) *Result {
	var timeout *TimeoutError
	var exit *ExitError
	switch {
	case res != nil || err == nil:
		return res
	case errors.As(err, &timeout) && timeout.Result != nil:
		return timeout.Result
	case errors.As(err, &exit) && exit.Result != nil:
		return exit.Result
	}
	said := outputFrom(err.Error(), nil, uint64(len(err.Error())), 0)
	made := &Result{ExitCode: -1, End: endOf(err), Error: err.Error(), Stderr: said, Output: said}
	if by := new(RuleError); errors.As(err, &by) {
		made.Rule = &by.Rule
	}
	if of := new(ApprovalError); errors.As(err, &of) {
		made.Approvals = of.Approvals
	}
	return made
}

// String returns one line for logs: the program, how it ended and how many denials
// there were, such as "go: exit code 1 after 1.2s, 2 denials".
func (r *Result) String() string {
	s := fmt.Sprintf("%s: exit code %d", r.name(), r.ExitCode)
	if r.End != EndExited && r.End != "" {
		s = fmt.Sprintf("%s: %s, exit code %d", r.name(),
			strings.ReplaceAll(string(r.End), "_", " "), r.ExitCode)
	}
	s += fmt.Sprintf(" after %v", r.Duration.Round(time.Millisecond))
	switch n := len(r.denials) + r.DenialsOmitted; n {
	case 0:
	case 1:
		s += ", 1 denial"
	default:
		s += fmt.Sprintf(", %d denials", n)
	}
	return s
}

// name returns the program's name for messages.
func (r *Result) name() string {
	if len(r.Args) == 0 {
		return "command"
	}
	return text.Word(path.Base(r.Args[0]))
}

// Output is the retained output of a stream. The zero Output is that of a stream that
// wrote nothing.
type Output struct {
	// Total counts the bytes that were written, Omitted those of them that were not
	// retained.
	Total, Omitted uint64

	kept output.Snapshot
}

func newOutput(s output.Snapshot) Output {
	return Output{Total: s.Total, Omitted: s.Omitted, kept: s}
}

// Bytes returns the retained bytes unchanged. Where bytes were omitted, the ones before
// and after the gap follow each other without a mark.
func (o Output) Bytes() []byte { return o.kept.Bytes() }

// Head returns the retained bytes before the gap of Omitted bytes, and Tail those after
// it. Without a gap the two follow each other directly. They must not be written to.
func (o Output) Head() []byte { return o.kept.Head }

// Tail returns the end of the retained output, see Head.
func (o Output) Tail() []byte { return o.kept.Tail }

// WithoutText returns an Output with the counts of o and no bytes.
func (o Output) WithoutText() Output { return Output{Total: o.Total, Omitted: o.Omitted} }

// String returns the retained output as text for reading: bytes that are not UTF-8 are
// replaced, and a line marks the place and the size of the gap. A character that the
// gap cut in two counts as omitted.
func (o Output) String() string {
	head, tail, omitted := wholeCharacters(o.kept)
	marker := ""
	if omitted > 0 && len(tail) > 0 {
		marker = output.Marker(omitted)
	}
	return text.Decode(head) + marker + text.Decode(tail)
}

// wholeCharacters returns the parts before and after the gap without the characters
// that the gap cut in two.
func wholeCharacters(s output.Snapshot) (head, tail []byte, omitted uint64) {
	if s.Omitted == 0 {
		return s.Bytes(), nil, 0
	}
	head, tail = text.Whole(s.Head, s.Tail)
	return head, tail, s.Omitted + uint64(len(s.Head)-len(head)+len(s.Tail)-len(tail))
}

// Plain returns the retained output as [Output.String] does, without the control sequences that programs
// print for a terminal: a carriage return and a newline are one newline, sequences that move the cursor
// become what separates words, and others nothing. Of a sequence that a reply or a gap cuts the end
// remains.
func (o Output) Plain() string { return text.WithoutControls(o.String()) }

// Decoded returns the retained output as text for reading, as [Output.String] does,
// except that it guesses the encoding of output that is not UTF-8. It knows common
// single-byte encodings of European languages, such as windows-1251, IBM866 and
// windows-1252, and judges by the letters that the output would contain. Where it
// recognizes none, or damaged UTF-8, the result is that of String.
//
// A guess turns a single stray byte into text and can be wrong, so use Decoded only
// for programs that do not print UTF-8. [Output.Bytes] has the bytes themselves.
func (o Output) Decoded() string {
	head, tail, omitted := wholeCharacters(o.kept)
	encoding := text.Guess(slices.Concat(head, tail))
	if encoding == nil {
		return o.String()
	}
	if omitted == 0 {
		return encoding.Decode(head)
	}
	return encoding.Decode(o.kept.Head) + output.Marker(o.kept.Omitted) + encoding.Decode(o.kept.Tail)
}

// first returns the form of a first attempt.
func first(r *Result) *records.First {
	if r == nil {
		return nil
	}
	return &records.First{
		End: string(r.End), ExitCode: r.ExitCode, Signal: r.Signal, DurationMS: r.Duration.Milliseconds(),
		Stdout: r.Stdout.String(), Stderr: r.Stderr.String(), Output: r.Output.String(),
		OmittedBytes: r.Stdout.Omitted + r.Stderr.Omitted, Denials: r.denials,
	}
}

// MarshalJSON returns the object with the member type "result". For a stream that is
// not UTF-8 the text is lossy and stdout_base64 or stderr_base64 holds the bytes.
func (r *Result) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// WriteJSON writes the object of MarshalJSON and a newline with one call of Write, and keeps
// fewer copies of the text in memory.
func (r *Result) WriteJSON(w io.Writer) error {
	j := records.Result{
		Type: "result", Args: r.Args, Dir: r.Dir, ExitCode: r.ExitCode, Signal: r.Signal,
		TimedOut: r.TimedOut, End: string(r.End), DurationMS: r.Duration.Milliseconds(),
		Stdout: r.Stdout.String(), Stderr: r.Stderr.String(), Output: r.Output.String(),
		StdoutBytes: r.Stdout.Total, StderrBytes: r.Stderr.Total,
		OmittedBytes: r.Stdout.Omitted + r.Stderr.Omitted,
		StdoutBase64: r.Stdout.binary(), StderrBase64: r.Stderr.binary(),
		StdoutOmitted: r.Stdout.Omitted, StderrOmitted: r.Stderr.Omitted,
		StdinError: strict.ErrorText(r.StdinErr), StdoutError: strict.ErrorText(r.StdoutErr),
		StderrError: strict.ErrorText(r.StderrErr),
		Rule:        r.Rule, Sandbox: r.Sandbox, Attempts: len(r.Attempts), Approvals: r.Approvals,
		Granted: r.Granted, Notices: r.Notices, First: first(r.First), Denials: r.denials,
		DenialsOmitted: r.DenialsOmitted,
		NetworkDenials: r.NetworkDenials, NetworkHosts: r.NetworkHosts,
		NetworkFailures: r.NetworkFailures, Survivors: len(r.Survivors),
		SurvivorList: event.Listed(r.Survivors), SurvivorsBy: r.SurvivorsBy,
		StreamsLeftOpen: r.StreamsLeftOpen, Quarantined: r.Quarantined, HardLinks: r.HardLinks,
		LinksOmitted:  r.HardLinksOmitted,
		OwnersIgnored: r.OwnershipIgnored, New: r.New, Stage: r.Stage, Recording: r.Recording,
		Limits: r.Limits, Usage: r.Usage,
		Withheld: r.Withheld, Warnings: r.Warnings, Error: r.Error, Run: r.Run, CallerID: r.CallerID,
	}
	if s := r.Stage; s != nil {
		j.ChangesTotal, j.Changes = &s.Total, slices.Grow(s.Changes, 1)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // people read it too
	if err := e.Encode(j); err != nil {
		return fmt.Errorf("sallyport: the result was not written as JSON: %w", err)
	}
	return nil
}

// UnmarshalJSON reads the object of MarshalJSON. Unknown members are ignored.
func (r *Result) UnmarshalJSON(data []byte) error {
	var j records.Result
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("sallyport: the object is not a result: %w", err)
	}
	const maxCount = 1 << 20 // a larger number of processes or attempts is not one of ours
	if j.Survivors < len(j.SurvivorList) || j.Survivors > maxCount || j.Attempts < 0 ||
		j.Attempts > maxCount {
		return fmt.Errorf("sallyport: the object is not a result: %d survivors and %d attempts",
			j.Survivors, j.Attempts)
	}
	*r = Result{
		Run: j.Run, CallerID: j.CallerID, Args: j.Args, Dir: j.Dir, ExitCode: j.ExitCode, Signal: j.Signal,
		End: End(j.End), TimedOut: j.TimedOut,
		Duration:    time.Duration(j.DurationMS) * time.Millisecond,
		Stdout:      outputFrom(j.Stdout, j.StdoutBase64, j.StdoutBytes, j.StdoutOmitted),
		Stderr:      outputFrom(j.Stderr, j.StderrBase64, j.StderrBytes, j.StderrOmitted),
		Output:      outputFrom(j.Output, nil, j.StdoutBytes+j.StderrBytes, j.OmittedBytes),
		Survivors:   append(j.SurvivorList, make([]executor.Survivor, j.Survivors-len(j.SurvivorList))...),
		SurvivorsBy: j.SurvivorsBy, StreamsLeftOpen: j.StreamsLeftOpen, Quarantined: j.Quarantined,
		HardLinks: j.HardLinks, HardLinksOmitted: j.LinksOmitted,
		OwnershipIgnored: j.OwnersIgnored, New: j.New,
		Stage: j.Stage, Recording: j.Recording, Limits: j.Limits, Usage: j.Usage, Rule: j.Rule, Sandbox: j.Sandbox,
		Attempts: make([]Attempt, j.Attempts),
		Withheld: j.Withheld, Warnings: j.Warnings, Error: j.Error, denials: j.Denials,
		DenialsOmitted: j.DenialsOmitted, NetworkDenials: j.NetworkDenials, NetworkHosts: j.NetworkHosts,
		NetworkFailures: j.NetworkFailures, Approvals: j.Approvals, Granted: j.Granted,
		Notices:  j.Notices,
		StdinErr: strict.Said(j.StdinError), StdoutErr: strict.Said(j.StdoutError),
		StderrErr: strict.Said(j.StderrError),
	}
	if s := r.Stage; s != nil {
		s.Changes = j.Changes
		if j.ChangesTotal != nil {
			s.Total = *j.ChangesTotal
		}
	}
	if f := j.First; f != nil { // which stream lacks the bytes that are not there is not known
		n := f.OmittedBytes
		r.First = &Result{
			End: End(f.End), ExitCode: f.ExitCode, Signal: f.Signal,
			Duration: time.Duration(f.DurationMS) * time.Millisecond, denials: f.Denials,
			Stdout: outputFrom(f.Stdout, nil, uint64(len(f.Stdout))+n, n),
			Stderr: outputFrom(f.Stderr, nil, uint64(len(f.Stderr)), 0),
			Output: outputFrom(f.Output, nil, uint64(len(f.Output))+n, n),
		}
	}
	return nil
}

// binary returns the retained bytes if String loses some of them.
func (o Output) binary() []byte {
	head, tail, _ := wholeCharacters(o.kept)
	if utf8.Valid(head) && utf8.Valid(tail) {
		return nil
	}
	return o.Bytes()
}

// outputFrom is the Output of a stream in a JSON form, whose text holds the mark of a gap.
func outputFrom(text string, data []byte, total, omitted uint64) Output {
	if data == nil {
		data = []byte(text)
	}
	return Output{Total: total, Omitted: omitted, kept: output.Snapshot{Head: data}}
}
