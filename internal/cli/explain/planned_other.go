// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package explain

import (
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// planned plans a command under a sandbox, which fails on a system without one.
func planned(facts *plan.Host) (string, error) {
	_, err := plan.Make(facts, &plan.Request{Spec: &executor.Spec{Policy: sandbox.ReadOnly()}})
	return "planned", err
}
