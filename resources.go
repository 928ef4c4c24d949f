// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
)

// AgentResources returns limits for commands that agents run unattended. They are far
// above what builds and tests of large projects need, and far below what takes a machine
// down:
//
//   - 8 GiB of memory: linkers and bundlers of large projects stay below it.
//   - 2048 processes and threads: a parallel build with a few runtimes of hundreds of
//     threads each. A fork bomb ends there.
//   - 16 GiB of disk: a cold build of a large project with all of its dependencies.
//     Set it to 0 with full access, where no executor can enforce it.
//   - 64 MiB of output: agents get its head and tail only.
//   - no limit on processors: a command that uses all of them is slow at worst, and
//     one that is slowed down exceeds time limits.
//
// A Cmd has no limits unless Cmd.Resources sets some.
func AgentResources() executor.Resources {
	return executor.Resources{Memory: 8 << 30, PIDs: 2048, Disk: 16 << 30, Output: 64 << 20}
}

// endOfLimit returns the end of a run that exceeded a limit.
func endOfLimit(limit string) End {
	switch limit {
	case executor.LimitMemory:
		return EndOOM
	case executor.LimitPIDs:
		return EndPIDs
	case executor.LimitDisk:
		return EndDisk
	case executor.LimitOutput:
		return EndOutput
	}
	return EndFailed
}

// enforced returns the limits that the executor enforced and the one on output, which the
// Runner enforces.
func (x *execution) enforced(a *attempt) []executor.Enforced {
	most := x.cmd.Resources.Output
	if most == 0 {
		return a.exit.Limits
	}
	return append(slices.Clone(a.exit.Limits), executor.Enforced{
		Limit: executor.LimitOutput, Value: float64(most), By: executor.ByWatch, Hit: a.fanout.exceeded,
	})
}
