// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Check is one line of the doctor's report.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix"`
	Needed bool   `json:"needed"` // the default policy needs it
}

// LevelCheck reports one sandbox level.
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

// A probe is one part of the sandbox and how to try it. The error says what is
// missing.
type probe struct {
	name   string
	needed bool
	try    func(ctx context.Context) (detail string, err error)
}

// Checks tries every part of the sandbox, each by itself. When ctx ends, the parts that
// are left are reported as not tried.
func Checks(ctx context.Context) []Check {
	var d doctor
	defer d.close()
	var checks []Check
	for _, p := range d.probes() {
		c := Check{Name: p.name, Needed: p.needed}
		if ctx.Err() != nil {
			c.Detail = "not tried: " + context.Cause(ctx).Error()
		} else if detail, err := p.try(ctx); err != nil {
			c.Detail, c.Fix = describe(err)
		} else {
			c.OK, c.Detail = true, detail
		}
		checks = append(checks, c)
	}
	return checks
}

// describe puts an error into the two sentences of a Check.
func describe(err error) (detail, fix string) {
	var no *sandbox.UnsupportedError
	switch {
	case !errors.As(err, &no):
		return err.Error(), ""
	case no.Hint == hostfacts.SeeDoctor:
		return no.Have, "no usual cause is known; ask the administrator of this machine, or look at dmesg"
	}
	return no.Have, no.Hint
}
