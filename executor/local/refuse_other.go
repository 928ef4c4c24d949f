// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package local

import (
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/limits"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// refuse refuses what only Linux supports: terminals, stages and limits.
func refuse(spec *executor.Spec) error {
	if spec.TTY != nil {
		return &sandbox.UnsupportedError{
			Need: "a terminal for the command", Have: "terminals are supported on Linux only",
			Hint: "run it without one, or on Linux",
		}
	}
	if spec.Stage != nil {
		return &sandbox.UnsupportedError{
			Need: "a stage", Have: "stages are supported on Linux only",
			Hint: "run it without one, or on Linux",
		}
	}
	return limits.Refuse(spec.Resources)
}
