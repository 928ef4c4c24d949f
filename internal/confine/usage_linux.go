// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cgroup"
	"github.com/sallyport-dev/sallyport/internal/launch"
)

// ownPeak is the most resident memory that this process ever had, in bytes.
func ownPeak() int64 {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return math.MaxInt64
	}
	return r.Maxrss << 10
}

// peakSlack is how much more than this process a process of the tree must have had
// for its peak to be its own: the kernel's counters of resident pages are kept per
// processor and summed up roughly.
func peakSlack(callerPeak int64) int64 {
	const least = 4 << 20
	return max(least, callerPeak/8)
}

// usage puts together what is known. The group counts only from the first process
// in it on, and with our own; the reaper's sums are for the command's tree alone.
func (b *bounds) usage(p launch.Usage, g cgroup.Usage, s seen) executor.Usage {
	var u executor.Usage
	if p.Known {
		cpu := p.User + p.System
		u.CPU, u.User, u.System = &cpu, &p.User, &p.System
	} else if g.CPU {
		cpu := g.User + g.System
		u.CPU, u.User, u.System = &cpu, &g.User, &g.System
	}
	switch {
	case g.Peak > 0:
		u.PeakMemory, u.PeakMemoryBy = &g.Peak, b.by(cgroup.Memory, "")
	case s.memory > 0:
		u.PeakMemory, u.PeakMemoryBy = &s.memory, executor.ByWatch
	case b.callerPeak < math.MaxInt64-peakSlack(0) && p.Peak > b.callerPeak+peakSlack(b.callerPeak):
		u.PeakMemory, u.PeakMemoryBy = &p.Peak, executor.ByRusage
	}
	if p.Known {
		u.Read, u.Written = &p.Read, &p.Written
	}
	if ours := reapers + b.others(); g.Tasks > ours {
		n := g.Tasks - ours
		u.Processes = &n
	}
	return u
}
