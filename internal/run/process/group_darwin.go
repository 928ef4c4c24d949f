// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
)

// members lists the processes of a group that run.
func members(pgid int) []executor.Survivor {
	const zombie = 5 // SZOMB of <sys/proc.h>
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgid)
	if err != nil {
		return nil
	}
	var out []executor.Survivor
	for i := range procs {
		if p := &procs[i].Proc; p.P_stat != zombie {
			out = append(out, executor.Survivor{PID: int(p.P_pid), Name: unix.ByteSliceToString(p.P_comm[:])})
		}
	}
	return out
}
