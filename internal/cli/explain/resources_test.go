// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

func TestLimitWords(t *testing.T) {
	held := []executor.Enforced{
		{Limit: executor.LimitMemory, Value: 512 << 20, By: executor.ByCgroupV1, Hit: true},
		{Limit: executor.LimitPIDs, Value: 200, By: executor.ByWatch},
		{Limit: executor.LimitDisk, Value: 1500, By: executor.ByWatch},
		{Limit: executor.LimitOutput, Value: 100, By: executor.ByWatch},
	}
	for end, want := range map[string]string{
		"oom":    "killed: memory limit exceeded (512 MiB)",
		"pids":   "killed: process limit exceeded (200)",
		"disk":   "killed: disk limit exceeded (1.5 KiB)",
		"output": "killed: output limit exceeded (100 B)",
		"exited": "",
	} {
		if got, flag := Exceeded(end, held); got != want || (flag == "") != (want == "") {
			t.Errorf("%s: %q", end, got)
		}
	}
	held[1].By = executor.ByCgroupV2
	if got, _ := Exceeded("pids", held); got != "failed: process limit exceeded (200)" {
		t.Errorf("%q", got)
	}
	if got, want := Limits(held[:2]),
		"limits: memory by cgroup-v1 (reached), pids by cgroup-v2"; got != want || Limits(nil) != "" {
		t.Errorf("%q", got)
	}
	cpu, peak, bytes, n := 1500*time.Millisecond, int64(3<<20), int64(0), 4
	u := executor.Usage{CPU: &cpu, PeakMemory: &peak, PeakMemoryBy: executor.ByRusage, Read: &bytes,
		Written: &peak, Processes: &n}
	if got, want := Usage(u),
		"used: 1.5s CPU, 3 MiB peak memory (by rusage), 0 B read and 3 MiB written, 4 processes and threads at once"; got != want || Usage(executor.Usage{}) != "" {
		t.Errorf("%q", got)
	}
}

// TestPIDsLine: a limit on processes is suspected only where nothing tells whether it was
// reached, and something was said about it or as many processes were left.
func TestPIDsLine(t *testing.T) {
	const forked, guess = "bash: fork: retry: Resource temporarily unavailable\n",
		"probably: process limit reached (10); raise --pids"
	for _, test := range []struct {
		name, limit, by, said string
		left                  int
		want                  string
	}{
		{"not observed", executor.LimitPIDs, executor.ByRlimit, forked, 0, guess},
		{"as dash has it", executor.LimitPIDs, executor.ByRlimit, "sh: 0: Cannot fork\n", 0, guess},
		{"all others are left", executor.LimitPIDs, executor.ByRlimit, "", 9, guess},
		{"fewer are left", executor.LimitPIDs, executor.ByRlimit, "", 8, ""},
		{"by a control group, which counts", executor.LimitPIDs, executor.ByCgroupV2, forked, 9, ""},
		{"another limit", executor.LimitMemory, executor.ByWatch, forked, 9, ""},
		{"nothing said", executor.LimitPIDs, executor.ByRlimit, "no\n", 0, ""},
	} {
		limits := []executor.Enforced{{Limit: test.limit, Value: 10, By: test.by}}
		if got := ProcessLimit(limits, test.left, []byte(test.said)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestSurvivorsLine(t *testing.T) {
	tests := []struct {
		name  string
		names []string
		want  string
	}{
		{"one", []string{"sleep"}, "ended 1 leftover process: sleep"},
		{"several", []string{"sleep", "node", "sleep"}, "ended 3 leftover processes: sleep (2), node"},
		{"no name", []string{""}, "ended 1 leftover process: ?"},
		{"hostile name", []string{"a\x1b[2J\n\xff"}, "ended 1 leftover process: a?[2J??"},
		{"many", []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}, "ended 9 leftover processes: a, b, c, d, e, f, g, h, ..."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var left []executor.Survivor
			for _, n := range tt.names {
				left = append(left, executor.Survivor{PID: 1, Name: n})
			}
			if got := Survivors(left); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
