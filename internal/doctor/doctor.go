// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what this machine can enforce and how to fix what is missing.
//
// [Checks] tries each part of the sandbox with a real launch, or reads what the system says of
// it; [Levels] tries each sandbox level as a whole. A part that is missing comes with a fix.
// The package changes nothing: what a probe makes, it removes.
package doctor

import "github.com/sallyport-dev/sallyport/internal/plan"

// A Check is one line of the report.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix"`
	Needed bool   `json:"needed"` // the default policy needs it
}

// A LevelCheck is the report on one sandbox level.
type LevelCheck struct {
	Level     string `json:"level"`
	Available bool   `json:"available"`
	Why       string `json:"why,omitempty"` // why it is not available
	Fix       string `json:"fix,omitempty"`
	// The walls that hold at this level on this machine, those that are missing, and those
	// for lack of which policies are refused. Never nil.
	Holds   []string    `json:"holds"`
	Lacks   []plan.Lack `json:"lacks"`
	Refuses []plan.Lack `json:"refuses"`
}
