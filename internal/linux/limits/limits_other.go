// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package limits

import (
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Refuse returns a *sandbox.UnsupportedError for the first limit that an executor would
// have to enforce, and nil when there is none.
func Refuse(r executor.Resources) error {
	for _, l := range []struct {
		name string
		set  bool
	}{
		{executor.LimitMemory, r.Memory > 0}, {executor.LimitCPUs, r.CPUs > 0},
		{executor.LimitPIDs, r.PIDs > 0}, {executor.LimitDisk, r.Disk > 0},
	} {
		if l.set {
			return &sandbox.UnsupportedError{
				Need: "the limit " + l.name, Have: "limits of a process tree are supported on Linux only",
				Hint: "leave it out, or run on Linux",
			}
		}
	}
	return nil
}
