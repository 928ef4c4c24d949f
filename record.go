// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Recorder records what the terminal of one command shows: *recording.Recorder is one. Its methods may be
// called from several goroutines at once, also before Begin and after End, and only Output may block.
type Recorder interface {
	// Begin is called once, when the first process runs and before its first output. The arguments of the Spec
	// have no secrets in them; it must not be kept.
	Begin(spec *executor.Spec)
	// Output gets what the terminal shows. While it blocks, the command blocks in its writes; it must return
	// when stopped is closed. It must not keep p.
	Output(p []byte, stopped <-chan struct{})
	// Input gets what was typed, where the executor knows whether the terminal has shown it. It must not keep p.
	Input(p []byte, echo executor.Echo)
	// Resize gets a new size of the terminal.
	Resize(size Size)
	// Mark gets one line about something that is not on the terminal: a denial, an approval, a second attempt.
	Mark(label string)
	// End is called once after Begin, with the exit code of the Result, or -1, and returns what was recorded.
	End(exitCode int) event.Recorded
}

// recording returns what records the terminal of the command; nil for nothing.
func (x *execution) recording() Recorder {
	if x.cmd.TTY == nil {
		return nil
	}
	return x.cmd.Record
}

// recordTerminal adds to a Spec what a recording needs to know.
func (x *execution) recordTerminal(spec *executor.Spec) {
	r := x.recording()
	if r == nil {
		return
	}
	spec.OnTyped = r.Input
	next := spec.OnDenied
	spec.OnDenied = func(d sandbox.Denial) {
		r.Mark("denied: " + text.Line(denialText(&d)))
		if next != nil {
			next(d)
		}
	}
}

// denialText is a denial in a few words.
func denialText(d *sandbox.Denial) string {
	what := d.Op.String()
	for _, of := range []string{d.Call, d.Path, d.Addr} {
		if of != "" {
			what += " " + of
		}
	}
	return what
}

// beginRecording begins to record, or marks another attempt.
func (x *execution) beginRecording(spec *executor.Spec) {
	r := x.recording()
	switch {
	case r == nil:
	case x.recorded:
		r.Mark(fmt.Sprintf("attempt %d", x.attempts))
	default:
		x.recorded = true
		shown := *spec
		shown.Args = environ.Mask(x.args)
		r.Begin(&shown)
	}
}

// mark marks an event in the recording.
func (x *execution) mark(b event.Body) {
	r := x.recording()
	if r == nil {
		return
	}
	switch b := b.(type) {
	case event.ApprovalRequested:
		r.Mark("asked: " + text.Line(b.Request.Action()))
	case event.ApprovalDecided:
		r.Mark(fmt.Sprintf("decided by %s: %s", b.Source, b.Decision))
	case event.Granted:
		r.Mark("granted: " + text.Line(b.Op.String()+" "+b.Path))
	case event.Network:
		if b.Decision == network.Deny && b.End == nil {
			r.Mark(fmt.Sprintf("denied: connect %s:%d", text.Line(b.Host), b.Port))
		}
	}
}

// endRecording closes the recording, and tells what is in it.
func (x *execution) endRecording(res *Result) {
	if !x.recorded {
		return
	}
	code := -1
	if res != nil {
		code = res.ExitCode
	}
	made := x.recording().End(code)
	x.emit(made)
	if res == nil {
		return
	}
	res.Recording = &made
	switch {
	case made.Error != "":
		res.Notices = append(res.Notices, "the recording ended before the command: "+made.Error)
	case made.Gaps > 0:
		res.Notices = append(res.Notices,
			fmt.Sprintf("the recording lacks %d bytes of output", made.Gaps))
	}
}
