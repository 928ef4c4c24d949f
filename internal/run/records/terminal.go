// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Terminal tells a Recorder what it needs to know of a run.
type Terminal struct {
	To    event.Recorder // nil records nothing
	begun bool
}

// Add adds to a Spec with a terminal what a recording needs to know.
func (t *Terminal) Add(spec *executor.Spec) {
	if t.To == nil {
		return
	}
	spec.OnTyped = t.To.Input
	next := spec.OnDenied
	spec.OnDenied = func(d sandbox.Denial) {
		what := d.Op.String()
		for _, of := range []string{d.Call, d.Path, d.Addr} {
			if of != "" {
				what += " " + of
			}
		}
		t.To.Mark("denied: " + text.Line(what))
		if next != nil {
			next(d)
		}
	}
}

// Begin begins the recording of a command with these arguments, which runs, or marks another attempt.
func (t *Terminal) Begin(spec *executor.Spec, args []string) {
	switch {
	case t.To == nil:
	case t.begun:
		t.To.Mark(fmt.Sprintf("attempt %d", spec.Attempt))
	default:
		t.begun = true
		shown := *spec
		shown.Args = environ.Mask(args)
		t.To.Begin(&shown)
	}
}

// Output records output of a stream.
func (t *Terminal) Output(s executor.Stream, p []byte, stopped <-chan struct{}) {
	if t.To != nil && s == executor.Stdout {
		t.To.Output(p, stopped)
	}
}

// Resize records a new size.
func (t *Terminal) Resize(s executor.Size) {
	if t.To != nil {
		t.To.Resize(s)
	}
}

// Mark marks an event.
func (t *Terminal) Mark(b event.Body) {
	if t.To == nil {
		return
	}
	switch b := b.(type) {
	case event.ApprovalRequested:
		t.To.Mark("asked: " + text.Line(b.Request.Action()))
	case event.ApprovalDecided:
		t.To.Mark(fmt.Sprintf("decided by %s: %s", b.Source, b.Decision))
	case event.Granted:
		t.To.Mark("granted: " + text.Line(b.Op.String()+" "+b.Path))
	case event.Network:
		if b.Decision == network.Deny && b.End == nil {
			t.To.Mark(fmt.Sprintf("denied: connect %s:%d", text.Line(b.Host), b.Port))
		}
	}
}

// End ends the recording, and returns what was recorded, nil for nothing, and a notice about it, which may be
// empty.
func (t *Terminal) End(exitCode int) (made *event.Recorded, notice string) {
	if !t.begun {
		return nil, ""
	}
	of := t.To.End(exitCode)
	switch {
	case of.Error != "":
		notice = "the recording ended before the command: " + of.Error
	case of.Gaps > 0:
		notice = fmt.Sprintf("the recording lacks %d bytes of output", of.Gaps)
	}
	return &of, notice
}
