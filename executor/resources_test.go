// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name  string
		l     Resources
		limit string // of the error; empty for none
	}{
		{"none", Resources{}, ""}, {"least", Resources{Memory: LeastMemory, CPUs: leastCPUs, PIDs: 1, Disk: 1, Output: 1}, ""},
		{"negative memory", Resources{Memory: -1}, LimitMemory}, {"too little memory", Resources{Memory: LeastMemory - 1}, LimitMemory},
		{"not a number", Resources{CPUs: math.NaN()}, LimitCPUs}, {"infinite", Resources{CPUs: math.Inf(1)}, LimitCPUs},
		{"negative processors", Resources{CPUs: -1}, LimitCPUs}, {"too little", Resources{CPUs: 0.001}, LimitCPUs}, {"too many", Resources{CPUs: 1e6}, LimitCPUs},
		{"negative processes", Resources{PIDs: -1}, LimitPIDs}, {"too many processes", Resources{PIDs: 1 << 30}, LimitPIDs},
		{"negative disk", Resources{Disk: -1}, LimitDisk}, {"negative output", Resources{Output: -1}, LimitOutput},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.l.Check()
			var bad *LimitError
			if errors.As(err, &bad) != (test.limit != "") || bad != nil && bad.Limit != test.limit {
				t.Errorf("%v", err)
			}
		})
	}
	err := Resources{Memory: 1 << 20}.Check()
	if err == nil || err.Error() != "invalid memory limit 1048576: no program starts with less than 4 MiB" {
		t.Errorf("%v", err)
	}
}

func TestUsageJSON(t *testing.T) {
	cpu, user, system := 1234567*time.Microsecond, time.Second, 234567*time.Microsecond
	peak, bytes, n := int64(1<<20), int64(0), 3
	for _, test := range []struct {
		name string
		u    Usage
		want string
	}{
		{"nothing", Usage{}, `{}`},
		{"all", Usage{CPU: &cpu, User: &user, System: &system, PeakMemory: &peak, PeakMemoryBy: ByCgroupV1, Read: &bytes, Written: &bytes, Processes: &n},
			`{"cpu_ms":1234,"user_ms":1000,"system_ms":234,"peak_memory_bytes":1048576,"peak_memory_by":"cgroup-v1","read_bytes":0,"written_bytes":0,"processes":3}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := json.Marshal(test.u); err != nil || string(got) != test.want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	got, err := json.Marshal([]Enforced{{Limit: LimitMemory, Value: 512 << 20, By: ByCgroupV2, Hit: true},
		{Limit: LimitCPUs, Value: 1.5, By: ByAffinity}})
	if want := `[{"limit":"memory","value":536870912,"by":"cgroup-v2","hit":true},{"limit":"cpus","value":1.5,"by":"affinity","hit":false}]`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
