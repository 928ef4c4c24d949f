// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Result is the JSON form of a result. Its member names and their types are a
// contract; new members may be added.
type Result struct {
	Type       string       `json:"type"` // always "result"
	Args       list[string] `json:"argv"`
	Dir        string       `json:"cwd"`
	ExitCode   int          `json:"exit_code"`
	Signal     int          `json:"signal"`
	TimedOut   bool         `json:"timed_out"`
	End        string       `json:"end"`
	DurationMS int64        `json:"duration_ms"`

	Stdout       string `json:"stdout"`
	Stderr       string `json:"stderr"`
	Output       string `json:"output"`
	StdoutBytes  uint64 `json:"stdout_bytes"`
	StderrBytes  uint64 `json:"stderr_bytes"`
	OmittedBytes uint64 `json:"omitted_bytes"`
	StdoutBase64 []byte `json:"stdout_base64,omitempty"` // the retained bytes, where they are not UTF-8
	StderrBase64 []byte `json:"stderr_base64,omitempty"`
	// The parts of omitted_bytes.
	StdoutOmitted uint64 `json:"stdout_omitted_bytes,omitempty"`
	StderrOmitted uint64 `json:"stderr_omitted_bytes,omitempty"`

	StdinError  string `json:"stdin_error,omitempty"`
	StdoutError string `json:"stdout_error,omitempty"`
	StderrError string `json:"stderr_error,omitempty"`

	Rule            *event.Rule                  `json:"rule,omitempty"`
	Sandbox         event.Sandbox                `json:"sandbox"`
	Attempts        int                          `json:"attempts"`
	Approvals       list[event.ApprovalDecided]  `json:"approvals,omitempty"`
	Granted         list[event.Granted]          `json:"granted,omitempty"`
	Notices         []string                     `json:"notices,omitempty"`
	First           *First                       `json:"first,omitempty"`
	Denials         list[sandbox.Denial]         `json:"denials"`
	DenialsOmitted  int                          `json:"denials_omitted,omitempty"`
	NetworkDenials  list[executor.NetworkDenial] `json:"network_denials,omitempty"`
	NetworkHosts    list[executor.NetworkHost]   `json:"network_hosts,omitempty"`
	NetworkFailures []executor.NetworkFailure    `json:"network_failures,omitempty"`
	Survivors       int                          `json:"survivors"`
	SurvivorList    list[executor.Survivor]      `json:"survivor_list,omitempty"`
	SurvivorsBy     string                       `json:"survivors_by,omitempty"`
	StreamsLeftOpen bool                         `json:"streams_left_open,omitempty"`
	Quarantined     list[executor.Quarantined]   `json:"quarantined,omitempty"`
	HardLinks       list[executor.HardLink]      `json:"hard_links,omitempty"`
	LinksOmitted    int                          `json:"hard_links_omitted,omitempty"`
	OwnersIgnored   int                          `json:"ownership_ignored,omitempty"`
	New             list[executor.New]           `json:"new,omitempty"`
	Stage           *executor.Staged             `json:"stage,omitempty"`
	Recording       *event.Recorded              `json:"recording,omitempty"`
	ChangesTotal    *int                         `json:"changes_total,omitempty"`
	Changes         list[executor.Change]        `json:"changes,omitzero"`
	Limits          list[executor.Enforced]      `json:"limits,omitempty"`
	Usage           executor.Usage               `json:"usage,omitzero"`
	Withheld        []string                     `json:"withheld,omitempty"`
	Warnings        []string                     `json:"warnings,omitempty"`
	Error           string                       `json:"error,omitempty"`
	Run             string                       `json:"run,omitempty"`
	CallerID        string                       `json:"caller_id,omitempty"`
}

// A First is the first attempt of a command that was run again.
type First struct {
	End          string               `json:"end"`
	ExitCode     int                  `json:"exit_code"`
	Signal       int                  `json:"signal"`
	DurationMS   int64                `json:"duration_ms"`
	Stdout       string               `json:"stdout"`
	Stderr       string               `json:"stderr"`
	Output       string               `json:"output"`
	OmittedBytes uint64               `json:"omitted_bytes"`
	Denials      list[sandbox.Denial] `json:"denials"`
}
