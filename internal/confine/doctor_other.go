// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package confine

import (
	"context"
	"errors"
	"runtime"

	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Doctor says that no sandbox can be built on this system. It tries nothing, and
// ctx has no influence.
func (h *Host) Doctor(context.Context) []Check {
	c := Check{Name: "whole sandbox", Needed: true, Detail: "this is " + runtime.GOOS}
	_, err := plan.Make(h.Facts(), &plan.Request{Mode: sandbox.Managed})
	var no *sandbox.UnsupportedError
	if errors.As(err, &no) {
		c.Detail, c.Mend = no.Have, no.Hint
	}
	return []Check{c}
}

// Levels says that no level can be had on this system. It tries nothing, and ctx
// has no influence.
func (h *Host) Levels(ctx context.Context) []LevelCheck {
	var out []LevelCheck
	for _, level := range []string{plan.LevelNative, plan.LevelBwrap, plan.LevelLandlock} {
		c := h.Doctor(ctx)[0]
		out = append(out, LevelCheck{Level: level, Why: c.Detail, Mend: c.Mend, Holds: []string{}, Lacks: []plan.Lack{}, Refuses: []plan.Lack{}})
	}
	return out
}
