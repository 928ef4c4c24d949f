// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
)

// AgentResources returns limits for commands that agents run without anybody who
// watches. They are far above what builds and tests of large projects need, and far
// below what takes a machine down:
//
//   - 8 GiB of memory: linkers and bundlers of large projects stay below it.
//   - 2048 processes and threads: a parallel build with a few runtimes of hundreds of
//     threads each. A fork bomb ends there.
//   - 16 GiB of disk: a cold build of a large project with all of its dependencies.
//     With full access no executor can hold it, so that set it to 0 there.
//   - 64 MiB of output: nobody reads more, and agents get its ends only.
//   - no limit on processors: a command that uses all of them is slow at worst, and
//     one that is slowed down runs into time-outs.
//
// A Cmd has no limits unless it is given some.
func AgentResources() executor.Resources {
	return executor.Resources{Memory: 8 << 30, PIDs: 2048, Disk: 16 << 30, Output: 64 << 20}
}

// endOfLimit is the end of a run that a limit has ended.
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

// enforced adds to what the executor held what the Runner did.
func (x *execution) enforced(a *attempt) []executor.Enforced {
	most := x.cmd.Resources.Output
	if most == 0 {
		return a.exit.Limits
	}
	return append(slices.Clone(a.exit.Limits), executor.Enforced{
		Limit: executor.LimitOutput, Value: float64(most), By: executor.ByWatch, Hit: a.ear.passed.Load(),
	})
}
