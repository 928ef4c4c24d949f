// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package confine

import (
	"context"
	"errors"
	"runtime"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Doctor says that no sandbox can be built on this system. It tries nothing, and
// ctx has no influence.
func (h *Host) Doctor(context.Context) []Check {
	c := Check{Name: "whole sandbox", Needed: true, Detail: "this is " + runtime.GOOS}
	_, err := plan.Make(h.Facts(), &plan.Request{Spec: &executor.Spec{Policy: sandbox.ReadOnly()}})
	var no *sandbox.UnsupportedError
	if errors.As(err, &no) {
		c.Detail, c.Fix = no.Have, no.Hint
	}
	return []Check{c}
}
