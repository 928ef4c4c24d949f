// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Limits bounds what a process and everything that it starts may use together. A
// zero member is no limit.
type Limits struct {
	// Memory is in bytes, at least [LeastMemory]. What goes beyond it ends the tree.
	Memory int64
	// CPUs is how many processors' worth of time the tree gets, such as 1.5; at
	// least [LeastCPUs]. It is slowed down to that, and not ended.
	CPUs float64
	// PIDs is how many processes and threads there may be at once. What would make
	// more is refused with EAGAIN, and the command goes on.
	PIDs int
	// Disk is how many bytes the writable folders of the policy, the private /tmp and
	// the private layers may grow by. It is watched; what is seen beyond it
	// ends the tree.
	Disk int64
	// Output is how many bytes both output streams may carry together. It is the
	// one limit that the caller of Start has to hold, who hears the output; an
	// Executor leaves it alone.
	Output int64
}

// The least values of limits: with less no command could start, or the kernel
// refuses it.
const (
	LeastMemory = 4 << 20 // bytes
	LeastCPUs   = 0.01
)

// The names of limits, as results have them.
const (
	LimitMemory = "memory"
	LimitCPUs   = "cpus"
	LimitPIDs   = "pids"
	LimitDisk   = "disk"
	LimitOutput = "output"
)

// What holds a limit, in the words of [Enforced].
const (
	ByCgroupV2 = "cgroup-v2" // a control group, version 2
	ByCgroupV1 = "cgroup-v1" // a control group, version 1
	ByRlimit   = "rlimit"    // a resource limit (setrlimit(2)) in a user namespace of the run's own
	ByWatch    = "watch"     // we look at it again and again, so it can be passed for a moment
	ByAffinity = "affinity"  // a set of processors, rounded up to whole ones; a program can ask for others
	ByRusage   = "rusage"    // the kernel's account of one process (getrusage(2)), for what was used
)

// Enforced says by what one limit was held.
type Enforced struct {
	Limit string  `json:"limit"` // one of the Limit constants
	Value float64 `json:"value"` // bytes, processors or processes, as in [Limits]
	By    string  `json:"by"`    // one of the By constants
	// Hit says that the limit is known to have been met. That of cpus never is, nor
	// that of pids where a resource limit holds it.
	Hit bool `json:"hit"`
}

// Check returns a *LimitError for a limit that no system could mean.
func (l Limits) Check() error {
	bad := func(limit string, value float64, reason string) error {
		return &LimitError{Limit: limit, Value: value, Reason: reason}
	}
	switch {
	case l.Memory < 0:
		return bad(LimitMemory, float64(l.Memory), "it is negative")
	case l.Memory > 0 && l.Memory < LeastMemory:
		return bad(LimitMemory, float64(l.Memory), "no program starts with less than 4 MiB")
	case math.IsNaN(l.CPUs) || math.IsInf(l.CPUs, 0) || l.CPUs < 0:
		return bad(LimitCPUs, l.CPUs, "it is no number of processors")
	case l.CPUs > 0 && l.CPUs < LeastCPUs:
		return bad(LimitCPUs, l.CPUs, "the least share of a processor is 0.01")
	case l.CPUs > mostCPUs:
		return bad(LimitCPUs, l.CPUs, "no system has that many processors")
	case l.PIDs < 0:
		return bad(LimitPIDs, float64(l.PIDs), "it is negative")
	case l.PIDs > mostPIDs:
		return bad(LimitPIDs, float64(l.PIDs), "no system has that many processes")
	case l.Disk < 0:
		return bad(LimitDisk, float64(l.Disk), "it is negative")
	case l.Output < 0:
		return bad(LimitOutput, float64(l.Output), "it is negative")
	}
	return nil
}

// What Linux can have at most (linux/threads.h, PID_MAX_LIMIT; CONFIG_NR_CPUS).
const (
	mostPIDs = 4 << 20
	mostCPUs = 8192
)

// A LimitError is a limit that means nothing.
type LimitError struct {
	Limit  string
	Value  float64
	Reason string
}

// Error returns one sentence.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the limit %s cannot be %s: %s", e.Limit, strconv.FormatFloat(e.Value, 'f', -1, 64), e.Reason)
}

// Usage is what a process and everything that it started used, from the start of
// the program to the end of the last process. A nil member is not known; the zero
// Usage knows nothing.
type Usage struct {
	// CPU is the time on processors, User and System its parts. What building
	// the sandbox took is not in it, except where the tree had to be killed.
	CPU, User, System *time.Duration
	// PeakMemory is in bytes. PeakMemoryBy says what it is: "cgroup-v1" and
	// "cgroup-v2" are the most that was charged to the whole tree at once, file
	// cache included; "rusage" is the largest resident memory of one process, known
	// only where it is more than the calling process ever had, because the
	// kernel lets a new process begin with that; "watch" is the most that
	// was seen of the whole tree.
	PeakMemory   *int64
	PeakMemoryBy string
	// Read and Written are bytes that came from and went to storage, without what
	// the file cache answered and what stayed in memory.
	Read, Written *int64
	// Processes is the most processes and threads that there were at once, as a
	// control group has counted them.
	Processes *int
}

// MarshalJSON returns an object without the members that are not known. Times are
// in whole milliseconds.
func (u Usage) MarshalJSON() ([]byte, error) {
	// By hand, because every run ends with one of these, and package json learns the
	// type anew in each process.
	b := []byte{'{'}
	member := func(name string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), '"', ':')
	}
	number := func(name string, n *int64) {
		if n != nil {
			member(name)
			b = strconv.AppendInt(b, *n, 10)
		}
	}
	milliseconds := func(name string, d *time.Duration) {
		if d != nil {
			n := d.Milliseconds()
			number(name, &n)
		}
	}
	milliseconds("cpu_ms", u.CPU)
	milliseconds("user_ms", u.User)
	milliseconds("system_ms", u.System)
	number("peak_memory_bytes", u.PeakMemory)
	if u.PeakMemoryBy != "" {
		by, err := json.Marshal(u.PeakMemoryBy)
		if err != nil {
			return nil, err
		}
		member("peak_memory_by")
		b = append(b, by...)
	}
	number("read_bytes", u.Read)
	number("written_bytes", u.Written)
	if u.Processes != nil {
		n := int64(*u.Processes)
		number("processes", &n)
	}
	return append(b, '}'), nil
}
