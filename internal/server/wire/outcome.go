// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Confine is an extension: what an [executor.Spec] has beyond the members of the protocol. A process that
// is started with one, which may be empty, tells its [Outcome].
type Confine struct {
	Memory           int64         `json:"memory,omitempty"` // bytes; 0 for no limit, as of all limits
	CPUs             float64       `json:"cpus,omitempty"`
	PIDs             int           `json:"pids,omitempty"`
	Disk             int64         `json:"disk,omitempty"` // bytes
	Level            string        `json:"level,omitempty" rule:"one=native|bwrap|landlock|seatbelt"`
	NoObserver       bool          `json:"noObserver,omitempty" rule:"nonnull"`
	NoCaches         bool          `json:"noCaches,omitempty" rule:"nonnull"`
	ProtectHardLinks bool          `json:"protectHardLinks,omitempty" rule:"nonnull"`
	OwnershipErrors  bool          `json:"ownershipErrors,omitempty" rule:"nonnull"`
	Stage            *ProcessStage `json:"stage,omitempty" rule:"nonnull"` // nil for none
	// A member that is not known would be left out of a wall.
	_ struct{} `rule:"strict"`
}

// ConfineOf returns what a Spec asks for.
func ConfineOf(s *executor.Spec) *Confine {
	r := &s.Resources
	c := &Confine{
		Memory: r.Memory, CPUs: r.CPUs, PIDs: r.PIDs, Disk: r.Disk, Level: s.Level, NoObserver: s.NoObserver,
		NoCaches: s.NoCaches, ProtectHardLinks: s.ProtectHardLinks, OwnershipErrors: s.OwnershipErrors,
	}
	if s.Stage != nil {
		c.Stage = &ProcessStage{Name: s.Stage.Name, ID: s.Stage.ID}
	}
	return c
}

// Apply has a Spec ask for it. Stages are those of an owner.
func (c *Confine) Apply(s *executor.Spec, owner string) {
	if c.Stage != nil {
		s.Stage = &executor.Staging{Name: c.Stage.Name, ID: c.Stage.ID, Owner: owner}
	}
	s.Resources = executor.Resources{Memory: c.Memory, CPUs: c.CPUs, PIDs: c.PIDs, Disk: c.Disk}
	s.Level, s.NoObserver, s.NoCaches = c.Level, c.NoObserver, c.NoCaches
	s.ProtectHardLinks, s.OwnershipErrors = c.ProtectHardLinks, c.OwnershipErrors
}

// Outcome is an extension: what is known of a process tree that has ended, beside its exit code. It is what
// an [executor.Exit] has, without what its client knows.
type Outcome struct {
	Sandbox        executor.Sandbox       `json:"sandbox"`
	Survivors      []executor.Survivor    `json:"survivors,omitempty"`
	SurvivorsBy    string                 `json:"survivorsBy,omitempty"`
	Quarantined    []executor.Quarantined `json:"quarantined,omitempty"`
	New            []executor.New         `json:"new,omitempty"`
	Denials        []sandbox.Denial       `json:"denials,omitempty"`     // of all but hosts
	DenialNotes    []DenialNote           `json:"denialNotes,omitempty"` // one for each
	DenialsOmitted int                    `json:"denialsOmitted,omitempty"`
	// NetworkFailures are hosts that the client allowed, and that the server could not reach.
	NetworkFailures  []executor.NetworkFailure `json:"networkFailures,omitempty"`
	HardLinks        []executor.HardLink       `json:"hardLinks,omitempty"`
	HardLinksOmitted int                       `json:"hardLinksOmitted,omitempty"`
	OwnershipIgnored int                       `json:"ownershipIgnored,omitempty"`
	Limits           []executor.Enforced       `json:"limits,omitempty"`
	Limit            string                    `json:"limit,omitempty"`
	Usage            executor.Usage            `json:"usage"`
	Broken           string                    `json:"broken,omitempty"`
	Stage            *StageOutcome             `json:"stage,omitempty"` // nil for none
}

// A DenialNote is what the JSON of a denial does not have.
type DenialNote struct {
	Final bool  `json:"final,omitempty"` // nothing opens it
	Time  int64 `json:"time"`            // the last one, in microseconds of the server's clock
}

// OutcomeOf returns what an Exit has. Its denials have their rules and grants already.
func OutcomeOf(e *executor.Exit) *Outcome {
	o := &Outcome{
		Sandbox: e.Sandbox, Survivors: e.Survivors, SurvivorsBy: e.SurvivorsBy,
		Quarantined: e.Quarantined, New: e.New,
		DenialsOmitted: e.DenialsOmitted, HardLinks: e.HardLinks, HardLinksOmitted: e.HardLinksOmitted,
		OwnershipIgnored: e.OwnershipIgnored, Limits: e.Limits, Limit: e.Limit, Usage: e.Usage,
		NetworkFailures: e.NetworkFailures,
	}
	for _, d := range e.Denials {
		if d.Source != sandbox.Proxied {
			o.Denials = append(o.Denials, d)
			o.DenialNotes = append(o.DenialNotes, DenialNote{Final: d.NoGrant, Time: d.Time.UnixMicro()})
		}
	}
	if e.Broken != nil {
		o.Broken = e.Broken.Error()
	}
	o.Stage = stagedOf(e.Stage)
	return o
}

// Complete adds it to an Exit in which the client has what it knows itself, but denials.
func (o *Outcome) Complete(e *executor.Exit) {
	e.Sandbox, e.Survivors, e.SurvivorsBy, e.Quarantined, e.New = o.Sandbox, o.Survivors, o.SurvivorsBy,
		o.Quarantined, o.New
	e.Denials, e.DenialsOmitted = slices.Clone(o.Denials), o.DenialsOmitted
	e.HardLinks, e.HardLinksOmitted, e.OwnershipIgnored = o.HardLinks, o.HardLinksOmitted, o.OwnershipIgnored
	e.Limits, e.Limit, e.Usage, e.NetworkFailures = o.Limits, o.Limit, o.Usage, o.NetworkFailures
	for i, note := range o.DenialNotes[:min(len(o.DenialNotes), len(o.Denials))] {
		e.Denials[i].NoGrant, e.Denials[i].Time = note.Final, time.UnixMicro(note.Time)
	}
	if o.Broken != "" {
		e.Broken = errors.New(o.Broken)
	}
	e.Stage = o.Stage.staged()
}

// Await are the parameters of process/awaitInput, an extension. It is answered when the process waits for
// input, and when it ends.
type Await struct {
	_         struct{} `rule:"name=AwaitParams"`
	ProcessID string   `json:"processId" rule:"need"`
}

// AwaitResult is its result. The zero value says that the process has ended.
type AwaitResult struct {
	Input *executor.InputWait `json:"input,omitempty"`
	// Unknown says that the server cannot tell.
	Unknown bool `json:"unknown,omitempty"`
}
