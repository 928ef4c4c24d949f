// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package doctor

import (
	"context"
	"errors"
	"runtime"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Checks says why no sandbox is available.
func Checks(context.Context) []Check {
	c := Check{Name: "whole sandbox", Needed: true, Detail: "this is " + runtime.GOOS}
	_, err := plan.Make(&plan.Host{System: runtime.GOOS}, &plan.Request{Spec: &executor.Spec{Policy: sandbox.ReadOnly()}})
	var no *sandbox.UnsupportedError
	if errors.As(err, &no) {
		c.Detail, c.Fix = no.Have, no.Hint
	}
	return []Check{c}
}
