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

// Resources limits what a process tree may use. A zero member is no limit.
type Resources struct {
	// Memory is in bytes, swap included, at least [LeastMemory]. A tree that exceeds
	// it is killed.
	Memory int64
	// CPUs is a number of processors, such as 1.5, at least 0.01. The tree is
	// throttled, not killed.
	CPUs float64
	// PIDs is the number of processes and threads at once. Creating more fails with
	// EAGAIN and the command goes on; where PIDs is only watched, the tree is killed.
	PIDs int
	// Disk is the number of bytes by which the writable directories of the policy, the
	// private /tmp and the private cache layers may grow. It is watched; a tree that
	// is seen beyond it is killed.
	Disk int64
	// Output is the number of bytes that both output streams may carry together. Nothing holds
	// more: what is beyond it is counted as omitted. The caller of Start, who receives the output,
	// passes on no more and ends the process; an Executor retains no more for Process.Output.
	Output int64
}

// The least values of limits. With less, no program could start or the kernel would
// reject the value.
const (
	LeastMemory = 4 << 20 // bytes
	leastCPUs   = 0.01
)

// The names of limits in results.
const (
	LimitMemory = "memory"
	LimitCPUs   = "cpus"
	LimitPIDs   = "pids"
	LimitDisk   = "disk"
	LimitOutput = "output"
)

// The means by which a limit is enforced or a usage was measured.
const (
	ByCgroupV2 = "cgroup-v2" // a control group, version 2
	ByCgroupV1 = "cgroup-v1" // a control group, version 1
	ByRlimit   = "rlimit"    // a resource limit (setrlimit(2)) in the run's own user namespace
	ByWatch    = "watch"     // repeated measurement; the limit can be exceeded for a moment
	ByAffinity = "affinity"  // a set of whole processors, rounded up; a program can choose others
	ByRusage   = "rusage"    // getrusage(2) of one process; only for usage
)

// Enforced says how one limit was enforced.
type Enforced struct {
	Limit string  `json:"limit"` // one of the Limit constants
	Value float64 `json:"value"` // bytes, processors or processes, as in [Resources]
	By    string  `json:"by"`    // one of the By constants
	// Hit says that the limit is known to have been reached. It is never known of cpus,
	// nor of pids enforced by a resource limit.
	Hit bool `json:"hit"`
}

// Check returns a *LimitError for a limit that is invalid on every system.
func (r Resources) Check() error {
	bad := func(limit string, value float64, reason string) error {
		return &LimitError{Limit: limit, Value: value, Reason: reason}
	}
	switch {
	case r.Memory < 0:
		return bad(LimitMemory, float64(r.Memory), "it is negative")
	case r.Memory > 0 && r.Memory < LeastMemory:
		return bad(LimitMemory, float64(r.Memory), "no program starts with less than 4 MiB")
	case math.IsNaN(r.CPUs) || math.IsInf(r.CPUs, 0) || r.CPUs < 0:
		return bad(LimitCPUs, r.CPUs, "it is not a number of processors")
	case r.CPUs > 0 && r.CPUs < leastCPUs:
		return bad(LimitCPUs, r.CPUs, "the least share of a processor is 0.01")
	case r.CPUs > mostCPUs:
		return bad(LimitCPUs, r.CPUs, "no system has that many processors")
	case r.PIDs < 0:
		return bad(LimitPIDs, float64(r.PIDs), "it is negative")
	case r.PIDs > mostPIDs:
		return bad(LimitPIDs, float64(r.PIDs), "no system has that many processes")
	case r.Disk < 0:
		return bad(LimitDisk, float64(r.Disk), "it is negative")
	case r.Output < 0:
		return bad(LimitOutput, float64(r.Output), "it is negative")
	}
	return nil
}

// The largest values of Linux (linux/threads.h, PID_MAX_LIMIT; CONFIG_NR_CPUS).
const (
	mostPIDs = 4 << 20
	mostCPUs = 8192
)

// LimitError reports an invalid limit.
type LimitError struct {
	Limit  string
	Value  float64
	Reason string
}

// Error returns one sentence with the limit, its value and the reason.
func (e *LimitError) Error() string {
	return fmt.Sprintf("invalid %s limit %s: %s", e.Limit,
		strconv.FormatFloat(e.Value, 'f', -1, 64), e.Reason)
}

// Usage is what a process tree used, from the start of the program to the end of the
// last process. A nil member is not known.
type Usage struct {
	// CPU is the processor time, the sum of User and System. Building the sandbox is
	// not included, except where the tree had to be killed.
	CPU, User, System *time.Duration
	// PeakMemory is in bytes. PeakMemoryBy says what it measures: ByCgroupV1 and
	// ByCgroupV2 the most that was charged to the whole tree at once, file cache
	// included; ByWatch the most that was seen of the whole tree; ByRusage the largest
	// resident memory of one process. The last is known only above the peak of the
	// calling process, because the kernel starts a new process with that value.
	PeakMemory   *int64
	PeakMemoryBy string
	// Read and Written are bytes from and to storage. What the file cache served and
	// what stayed in memory is not included.
	Read, Written *int64
	// Processes is the most processes and threads that a control group counted at
	// once.
	Processes *int
}

// Add adds what another tree used. What is not known of one of both counts as nothing, and the peaks are
// those of the tree that had the larger one.
func (u *Usage) Add(v Usage) {
	add(&u.CPU, v.CPU)
	add(&u.User, v.User)
	add(&u.System, v.System)
	add(&u.Read, v.Read)
	add(&u.Written, v.Written)
	if v.PeakMemory != nil && (u.PeakMemory == nil || *u.PeakMemory < *v.PeakMemory) {
		u.PeakMemory, u.PeakMemoryBy = v.PeakMemory, v.PeakMemoryBy
	}
	if v.Processes != nil && (u.Processes == nil || *u.Processes < *v.Processes) {
		u.Processes = v.Processes
	}
}

func add[T time.Duration | int64](to **T, n *T) {
	if n == nil {
		return
	}
	sum := *n
	if *to != nil {
		sum += **to
	}
	*to = &sum
}

// MarshalJSON encodes u as an object without the members that are not known. Times
// are in whole milliseconds.
func (u Usage) MarshalJSON() ([]byte, error) {
	return json.Marshal(usage{
		milliseconds(u.CPU), milliseconds(u.User), milliseconds(u.System),
		u.PeakMemory, u.PeakMemoryBy, u.Read, u.Written, u.Processes,
	})
}

// UnmarshalJSON decodes the object of MarshalJSON.
func (u *Usage) UnmarshalJSON(data []byte) error {
	var f usage
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("executor: the object is no usage: %w", err)
	}
	*u = Usage{duration(f.CPU), duration(f.User), duration(f.System), f.PeakMemory, f.PeakMemoryBy, f.Read,
		f.Written, f.Processes}
	return nil
}

// usage is the JSON form of a Usage.
type usage struct {
	CPU          *int64 `json:"cpu_ms,omitempty"`
	User         *int64 `json:"user_ms,omitempty"`
	System       *int64 `json:"system_ms,omitempty"`
	PeakMemory   *int64 `json:"peak_memory_bytes,omitempty"`
	PeakMemoryBy string `json:"peak_memory_by,omitempty"`
	Read         *int64 `json:"read_bytes,omitempty"`
	Written      *int64 `json:"written_bytes,omitempty"`
	Processes    *int   `json:"processes,omitempty"`
}

// duration is the reverse of milliseconds.
func duration(ms *int64) *time.Duration {
	if ms == nil {
		return nil
	}
	d := time.Duration(*ms) * time.Millisecond
	return &d
}

// milliseconds returns d in whole milliseconds; nil stays nil.
func milliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	n := d.Milliseconds()
	return &n
}
