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

// ends returns the two objects before and after the texts.
func (r Report) ends() (head, tail []byte, err error) {
	var rawOut, rawErr []byte
	if r.Stdout.Binary {
		rawOut = r.Stdout.Data
	}
	if r.Stderr.Binary {
		rawErr = r.Stderr.Data
	}
	head, err = encode(struct {
		Type     string   `json:"type"`
		Args     []string `json:"argv"`
		Dir      string   `json:"cwd"`
		ExitCode int      `json:"exit_code"`
		Signal   int      `json:"signal"`
		TimedOut bool     `json:"timed_out"`
		End      string   `json:"end"`
		Duration int64    `json:"duration_ms"`
	}{"result", list(r.Args), r.Dir, r.ExitCode, r.Signal, r.TimedOut, r.End, r.Duration.Milliseconds()})
	if err != nil {
		return nil, nil, err
	}
	tail, err = encode(struct {
		StdoutBytes uint64           `json:"stdout_bytes"`
		StderrBytes uint64           `json:"stderr_bytes"`
		Omitted     uint64           `json:"omitted_bytes"`
		Sandbox     Sandbox          `json:"sandbox"`
		Attempts    int              `json:"attempts"`
		Denials     []sandbox.Denial `json:"denials"`
		Survivors   int              `json:"survivors"`
		LeftOpen    bool             `json:"streams_left_open,omitempty"`

		Quarantined []executor.Quarantined `json:"quarantined,omitempty"`

		Withheld  []string `json:"withheld,omitempty"`
		Warnings  []string `json:"warnings,omitempty"`
		RawStdout []byte   `json:"stdout_base64,omitempty"`
		RawStderr []byte   `json:"stderr_base64,omitempty"`
		Error     string   `json:"error,omitempty"`
		Unlisted  int      `json:"denials_omitted,omitempty"`
		Run       string   `json:"run,omitempty"`

		List []survivorDetail `json:"survivor_list,omitempty"`
		By   string           `json:"survivors_by,omitempty"`

		Limits []executor.Enforced `json:"limits,omitempty"`
		Usage  executor.Usage      `json:"usage,omitzero"`
	}{
		r.Stdout.Total, r.Stderr.Total, r.Stdout.Omitted + r.Stderr.Omitted,
		r.Sandbox.complete(), r.Attempts, list(r.Denials), r.Survivors, r.StreamsLeftOpen, r.Quarantined, r.Withheld, r.Warnings, rawOut, rawErr, r.Error,
		r.DenialsOmitted, r.Run, survivorList(r.SurvivorList), r.SurvivorsBy, r.Limits, r.Usage,
	})
	return head, tail, err
}

// complete makes lists of what are lists in JSON.
func (s Sandbox) complete() Sandbox {
	s.Mechanism = list(s.Mechanism)
	return s
}
