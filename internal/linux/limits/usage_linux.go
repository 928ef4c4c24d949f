// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
)

// ownPeak returns the peak resident memory of this process in bytes.
func ownPeak() int64 {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return math.MaxInt64
	}
	return r.Maxrss << 10
}

// ownPeakOf returns whether a peak that the kernel reports for a process of the tree is
// its own. A new process starts with the peak of this one, and the kernel sums up its
// counters of resident pages per processor only roughly.
func ownPeakOf(peak, callerPeak int64) bool {
	const least = 4 << 20
	return peak-max(least, callerPeak/8) > callerPeak
}

// usage combines what the reaper, the control group and the watch measured. The
// reaper's sums contain the command's tree alone. The group counts this program's
// processes too, and only what happened after the first one entered it.
func (b *Bounds) usage(p launch.Usage, by string, g counted, s seen) executor.Usage {
	var u executor.Usage
	if p.Known {
		total := p.User + p.System
		u.CPU, u.User, u.System = &total, &p.User, &p.System
		u.Read, u.Written = &p.Read, &p.Written
	} else if g.cpu {
		total := g.user + g.system
		u.CPU, u.User, u.System = &total, &g.user, &g.system
	}
	switch {
	case g.peak > 0:
		u.PeakMemory, u.PeakMemoryBy = &g.peak, by
	case s.memory > 0:
		u.PeakMemory, u.PeakMemoryBy = &s.memory, executor.ByWatch
	case ownPeakOf(p.Peak, b.callerPeak):
		u.PeakMemory, u.PeakMemoryBy = &p.Peak, executor.ByRusage
	}
	if ours := reapers + b.others(); g.tasks > ours {
		n := g.tasks - ours
		u.Processes = &n
	}
	return u
}
