// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Sandbox is what confined a command, for JSON.
type Sandbox struct {
	Mode      string   `json:"mode"`             // the policy, such as "workspace-write"
	Mechanism []string `json:"mechanism"`        // such as "userns"; empty for none
	Network   string   `json:"network"`          // "none", "proxy" or "host"
	Level     string   `json:"level"`            // what was reached: "native", "bwrap", "landlock", "seatbelt" or "none"
	Weaker    []string `json:"weaker,omitempty"` // what is weaker than the level promises
	Observed  bool     `json:"observed"`         // refused accesses were seen, not guessed
}

// Report is how a run ended, for JSON: the object that scripts and agents read.
// Its member names and their types stay; new ones may be added.
type Report struct {
	// Run is the identity of the run; empty for a command that never began.
	Run      string
	Args     []string
	Dir      string
	ExitCode int
	Signal   int
	TimedOut bool
	End      string // "exited", "signaled", "timed_out", ...
	Duration time.Duration

	// Stdout and Stderr are what was kept of each stream, Output of both in
	// order of arrival.
	Stdout, Stderr, Output Captured

	Sandbox  Sandbox
	Attempts int
	Denials  []sandbox.Denial
	// DenialsOmitted counts denials that are not among Denials for want of room.
	DenialsOmitted int
	Survivors      int
	// SurvivorList describes survivors; the first 20 are shown. SurvivorsBy says by
	// what means they are found and ended.
	SurvivorList []executor.Survivor
	SurvivorsBy  string
	// StreamsLeftOpen says that a survivor still held an output stream.
	StreamsLeftOpen bool
	// Quarantined are names that appeared although they must not, and were moved
	// away.
	Quarantined []executor.Quarantined
	// Withheld are the names of variables that the command did not get.
	Withheld []string
	// Warnings are sentences about what is likely not meant.
	Warnings []string
	// Limits says by what each limit was held, Usage what was used.
	Limits []executor.Enforced
	Usage  executor.Usage
	// Error says why the command did not run or why its end is not known.
	Error string
}

// Captured is what was kept of a stream.
type Captured struct {
	Data    []byte // what was kept, as it came; needed only where Binary is set
	Text    string // the same for reading, with a mark where bytes were left out
	Total   uint64 // bytes that came
	Omitted uint64 // bytes that were not kept
	Binary  bool   // Text loses something: Data is not UTF-8
}

// MarshalJSON returns the object, with the member type "result". Where a stream
// is not UTF-8 its text is lossy and stdout_base64 or stderr_base64 holds what
// was kept.
func (r Report) MarshalJSON() ([]byte, error) {
	head, tail, err := r.ends()
	if err != nil {
		return nil, err
	}
	// The texts go between the two, in one piece of memory of the right size.
	texts := []struct{ name, text string }{{"stdout", r.Stdout.Text}, {"stderr", r.Stderr.Text}, {"output", r.Output.Text}}
	size := len(head) + len(tail) + 2
	for _, t := range texts {
		size += len(t.name) + 4 + textSize(t.text)
	}
	b := append(make([]byte, 0, size), head[:len(head)-1]...)
	for _, t := range texts {
		b = append(b, ',', '"')
		b = append(b, t.name...)
		b = append(b, '"', ':')
		b = appendText(b, t.text)
	}
	b = append(b, ',')
	return append(b, tail[1:]...), nil
}

// WithoutOutput returns the object of MarshalJSON without what the command printed.
func (r Report) WithoutOutput() ([]byte, error) {
	r.Stdout.Binary, r.Stderr.Binary = false, false
	head, tail, err := r.ends()
	if err != nil {
		return nil, err
	}
	head[len(head)-1] = ','
	return append(head, tail[1:]...), nil
}

// ends returns the two objects before and after the texts. They are written by hand:
// every run ends with one of these, and package json learns every type anew in each
// process, which takes it longer than all the rest.
func (r Report) ends() (head, tail []byte, err error) {
	var rawOut, rawErr []byte
	if r.Stdout.Binary {
		rawOut = r.Stdout.Data
	}
	if r.Stderr.Binary {
		rawErr = r.Stderr.Data
	}
	var h, t object
	h.text("type", "result")
	h.texts("argv", r.Args)
	h.text("cwd", r.Dir)
	h.number("exit_code", int64(r.ExitCode))
	h.number("signal", int64(r.Signal))
	h.flag("timed_out", r.TimedOut)
	h.text("end", r.End)
	h.number("duration_ms", r.Duration.Milliseconds())

	t.count("stdout_bytes", r.Stdout.Total)
	t.count("stderr_bytes", r.Stderr.Total)
	t.count("omitted_bytes", r.Stdout.Omitted+r.Stderr.Omitted)
	t.key("sandbox")
	t.b = r.Sandbox.append(t.b)
	t.number("attempts", int64(r.Attempts))
	appendList(&t, "denials", r.Denials, false)
	t.number("survivors", int64(r.Survivors))
	if r.StreamsLeftOpen {
		t.flag("streams_left_open", true)
	}
	appendList(&t, "quarantined", r.Quarantined, true)
	t.someTexts("withheld", r.Withheld)
	t.someTexts("warnings", r.Warnings)
	t.someBytes("stdout_base64", rawOut)
	t.someBytes("stderr_base64", rawErr)
	t.someText("error", r.Error)
	if r.DenialsOmitted != 0 {
		t.number("denials_omitted", int64(r.DenialsOmitted))
	}
	t.someText("run", r.Run)
	appendList(&t, "survivor_list", survivorList(r.SurvivorList), true)
	t.someText("survivors_by", r.SurvivorsBy)
	appendList(&t, "limits", r.Limits, true)
	if r.Usage != (executor.Usage{}) {
		usage, err := r.Usage.MarshalJSON()
		t.raw("usage", usage, err)
	}
	if t.err != nil {
		return nil, nil, t.err
	}
	return h.end(), t.end(), nil
}

// append appends the object that the tags of s describe.
func (s Sandbox) append(b []byte) []byte {
	var o object
	o.text("mode", s.Mode)
	o.texts("mechanism", s.Mechanism)
	o.text("network", s.Network)
	o.text("level", s.Level)
	o.someTexts("weaker", s.Weaker)
	o.flag("observed", s.Observed)
	return append(b, o.end()...)
}

// complete makes lists of what are lists in JSON.
func (s Sandbox) complete() Sandbox {
	s.Mechanism = list(s.Mechanism)
	return s
}
