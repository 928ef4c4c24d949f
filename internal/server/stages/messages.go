// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stages has the methods of an exec-server about stages: what they are called with and answer, how a
// server performs them, and a client of them that is an [executor.Stager]. They are an extension of the
// protocol. A client sees the stages of its own credential only, by their whole IDs.
package stages

import (
	"github.com/sallyport-dev/sallyport/executor"
)

// The methods.
const (
	methodList    = "stage/list"
	methodChanges = "stage/changes"
	methodDiff    = "stage/diff"
	methodApply   = "stage/apply"
	methodDiscard = "stage/discard"
)

// maxAnswer is how many bytes of a list or a diff one answer has.
const maxAnswer = 4 << 20

// List is the result of stage/list. Stages must not be nil.
type List struct {
	_      struct{}             `rule:"name=StageListResult"`
	Stages []executor.StageInfo `json:"stages"` // the oldest first
	// the first stages that one answer has no room for
	Omitted int `json:"omitted,omitempty"`
	// what could not be read; empty for none
	Warning string `json:"warning,omitempty"`
	// Version changes with a stage that comes, goes or is used. It is empty of servers without it.
	Version string `json:"version,omitempty"`
}

// Of names a stage, and the changes in it that a request is about.
type Of struct {
	_  struct{} `rule:"name=StageParams"`
	ID string   `json:"stageId" rule:"need,filled"`
	// absolute, or relative to the workspace: changes at and below them; empty for all
	Paths []string `json:"paths,omitempty"`
}

// ChangesOf are the parameters of stage/changes.
type ChangesOf struct {
	_ struct{} `rule:"name=StageChangesParams"`
	Of
	After uint64 `json:"after,omitempty"` // how many changes to leave out, those of the answers before
}

// Changes is the result of stage/changes. Changes must not be nil; there are no more of them after
// Total.
type Changes struct {
	_       struct{}          `rule:"name=StageChangesResult"`
	Total   int               `json:"changesTotal"` // of those at the paths
	Changes []executor.Change `json:"changes"`
}

// DiffOf are the parameters of stage/diff.
type DiffOf struct {
	_ struct{} `rule:"name=StageDiffParams"`
	Of
	From uint64 `json:"from,omitempty"` // the offset in the diff
}

// Diff is the result of stage/diff: a part of the diff as it is now. Parts with equal digests are of one
// diff.
type Diff struct {
	_      struct{} `rule:"name=StageDiffResult"`
	Part   []byte   `json:"part"`
	Total  uint64   `json:"bytesTotal"` // of the diff
	Digest string   `json:"digest"`     // SHA-256 of all of it, in hexadecimal
}

// Apply are the parameters of stage/apply.
type Apply struct {
	_ struct{} `rule:"name=StageApplyParams"`
	Of
	DryRun bool `json:"dryRun,omitempty"`
	Force  bool `json:"force,omitempty"`
}

// Applied is the result of stage/apply, as in [executor.Applied]. With conflicts nothing was applied, but by
// force. No list is nil.
type Applied struct {
	_         struct{}            `rule:"name=StageApplyResult"`
	Applied   []string            `json:"applied"`
	Conflicts []executor.Conflict `json:"conflicts"`
	Left      int                 `json:"left"`
	Refused   []executor.Conflict `json:"refused"`
	// how many elements of the lists one answer has no room for
	Omitted int `json:"omitted,omitempty"`
}

// Discard are the parameters of stage/discard.
type Discard struct {
	_ struct{} `rule:"name=StageDiscardParams"`
	Of
	Force bool `json:"force,omitempty"`
}
