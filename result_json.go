// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/caller"
	"github.com/sallyport-dev/sallyport/internal/forms"
	"github.com/sallyport-dev/sallyport/internal/output"
)

// first returns the form of a first attempt.
func first(r *Result) *forms.First {
	if r == nil {
		return nil
	}
	return &forms.First{
		End: string(r.End), ExitCode: r.ExitCode, Signal: r.Signal, DurationMS: r.Duration.Milliseconds(),
		Stdout: r.Stdout.String(), Stderr: r.Stderr.String(), Output: r.Output.String(), OmittedBytes: r.Stdout.Omitted + r.Stderr.Omitted, Denials: r.denials,
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
	j := forms.Result{
		Type: "result", Args: r.Args, Dir: r.Dir, ExitCode: r.ExitCode, Signal: r.Signal,
		TimedOut: r.TimedOut, End: string(r.End), DurationMS: r.Duration.Milliseconds(),
		Stdout: r.Stdout.String(), Stderr: r.Stderr.String(), Output: r.Output.String(),
		StdoutBytes: r.Stdout.Total, StderrBytes: r.Stderr.Total, OmittedBytes: r.Stdout.Omitted + r.Stderr.Omitted,
		StdoutBase64: r.Stdout.binary(), StderrBase64: r.Stderr.binary(),
		StdoutOmitted: r.Stdout.Omitted, StderrOmitted: r.Stderr.Omitted,
		StdinError: caller.Text(r.StdinErr), StdoutError: caller.Text(r.StdoutErr), StderrError: caller.Text(r.StderrErr),
		Rule: r.Rule, Sandbox: r.Sandbox, Attempts: len(r.Attempts), Approvals: r.Approvals, Notices: r.Notices, First: first(r.First), Denials: r.denials, DenialsOmitted: r.DenialsOmitted, NetworkDenials: r.NetworkDenials, NetworkHosts: r.NetworkHosts,
		Survivors: len(r.Survivors), SurvivorList: event.Listed(r.Survivors), SurvivorsBy: r.SurvivorsBy,
		StreamsLeftOpen: r.StreamsLeftOpen, Quarantined: r.Quarantined, HardLinks: r.HardLinks, LinksOmitted: r.HardLinksOmitted,
		OwnersIgnored: r.OwnershipIgnored, New: r.New, Limits: r.Limits, Usage: r.Usage,
		Withheld: r.Withheld, Warnings: r.Warnings, Error: r.Error, Run: r.Run, CallerID: r.CallerID,
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
	var j forms.Result
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("sallyport: the object is not a result: %w", err)
	}
	const maxCount = 1 << 20 // a larger number of processes or attempts is not one of ours
	if j.Survivors < len(j.SurvivorList) || j.Survivors > maxCount || j.Attempts < 0 || j.Attempts > maxCount {
		return fmt.Errorf("sallyport: the object is not a result: %d survivors and %d attempts", j.Survivors, j.Attempts)
	}
	*r = Result{
		Run: j.Run, CallerID: j.CallerID, Args: j.Args, Dir: j.Dir, ExitCode: j.ExitCode, Signal: j.Signal, End: End(j.End), TimedOut: j.TimedOut,
		Duration:    time.Duration(j.DurationMS) * time.Millisecond,
		Stdout:      outputFrom(j.Stdout, j.StdoutBase64, j.StdoutBytes, j.StdoutOmitted),
		Stderr:      outputFrom(j.Stderr, j.StderrBase64, j.StderrBytes, j.StderrOmitted),
		Output:      outputFrom(j.Output, nil, j.StdoutBytes+j.StderrBytes, j.OmittedBytes),
		Survivors:   append(j.SurvivorList, make([]executor.Survivor, j.Survivors-len(j.SurvivorList))...),
		SurvivorsBy: j.SurvivorsBy, StreamsLeftOpen: j.StreamsLeftOpen, Quarantined: j.Quarantined,
		HardLinks: j.HardLinks, HardLinksOmitted: j.LinksOmitted, OwnershipIgnored: j.OwnersIgnored, New: j.New,
		Limits: j.Limits, Usage: j.Usage, Rule: j.Rule, Sandbox: j.Sandbox, Attempts: make([]Attempt, j.Attempts),
		Withheld: j.Withheld, Warnings: j.Warnings, Error: j.Error, denials: j.Denials, DenialsOmitted: j.DenialsOmitted, NetworkDenials: j.NetworkDenials, NetworkHosts: j.NetworkHosts,
		Approvals: j.Approvals, Notices: j.Notices,
		StdinErr: caller.Said(j.StdinError), StdoutErr: caller.Said(j.StdoutError), StderrErr: caller.Said(j.StderrError),
	}
	if f := j.First; f != nil { // which stream lacks the bytes that are not there is not known
		n := f.OmittedBytes
		r.First = &Result{
			End: End(f.End), ExitCode: f.ExitCode, Signal: f.Signal, Duration: time.Duration(f.DurationMS) * time.Millisecond, denials: f.Denials,
			Stdout: outputFrom(f.Stdout, nil, uint64(len(f.Stdout))+n, n), Stderr: outputFrom(f.Stderr, nil, uint64(len(f.Stderr)), 0),
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
