// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
)

func TestLimitFlags(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want executor.Resources
		err  string
	}{
		{"none", nil, executor.Resources{}, ""},
		{"all", []string{"--memory", "512MiB", "--cpus", "1.5", "--pids=200", "--disk", "1g", "--output", "10MB"},
			executor.Resources{Memory: 512 << 20, CPUs: 1.5, PIDs: 200, Disk: 1 << 30, Output: 10e6}, ""},
		{"no size", []string{"--memory", "much"}, executor.Resources{}, `--memory: invalid size "much"; use a form such as`},
		{"negative size", []string{"--disk", "-1"}, executor.Resources{}, `--disk: invalid size "-1"`},
		{"zero", []string{"--output", "0"}, executor.Resources{}, "--output: a limit of 0 is invalid; leave the flag out for no limit"},
		{"too little", []string{"--memory", "1MiB"}, executor.Resources{Memory: 1 << 20}, "--memory: no program starts with less than 4 MiB"},
		{"no processors", []string{"--cpus", "0"}, executor.Resources{}, "--cpus: a limit of 0 is invalid"},
		{"an exponent", []string{"--cpus", "1e3"}, executor.Resources{}, `--cpus: invalid number of processors "1e3"`},
		{"infinite", []string{"--cpus", "Inf"}, executor.Resources{}, `--cpus: invalid number of processors "Inf"`},
		{"tiny", []string{"--cpus", "0.001"}, executor.Resources{CPUs: 0.001}, "--cpus: the least share of a processor is 0.01"},
		{"no processes", []string{"--pids", "0"}, executor.Resources{}, "--pids: a limit of 0 is invalid"},
		{"a sign", []string{"--pids", "+5"}, executor.Resources{}, `--pids: invalid number of processes "+5"; use a number such as 200`},
		{"too many", []string{"--pids", "99999999999"}, executor.Resources{}, `--pids: invalid number of processes "99999999999"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var o runOptions
			words, err := parse(runFlags(&o), append(test.args, "--", "true"))
			if err == nil {
				err = o.check(words)
			}
			switch {
			case test.err == "" && err != nil, test.err != "" && (err == nil || !strings.HasPrefix(err.Error(), test.err)):
				t.Errorf("%v, want %q", err, test.err)
			case test.err == "" && o.resources != test.want:
				t.Errorf("%+v", o.resources)
			}
		})
	}
}

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"1", "0.5", "1e9", "NaN", "0x10", "1_000", ".", "٣", "99999999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseCPUs(s); err == nil && !(n > 0 && n < 1e308) {
			t.Errorf("%q is %v processors", s, n)
		}
		if n, err := parsePIDs(s); err == nil && n <= 0 {
			t.Errorf("%q is %d processes", s, n)
		}
	})
}

func TestLimitWords(t *testing.T) {
	held := []executor.Enforced{
		{Limit: executor.LimitMemory, Value: 512 << 20, By: executor.ByCgroupV1, Hit: true},
		{Limit: executor.LimitPIDs, Value: 200, By: executor.ByWatch},
		{Limit: executor.LimitDisk, Value: 1500, By: executor.ByWatch},
		{Limit: executor.LimitOutput, Value: 100, By: executor.ByWatch},
	}
	for end, want := range map[sallyport.End]string{
		sallyport.EndOOM:    "killed: memory limit exceeded (512 MiB)",
		sallyport.EndPIDs:   "killed: process limit exceeded (200)",
		sallyport.EndDisk:   "killed: disk limit exceeded (1.5 KiB)",
		sallyport.EndOutput: "killed: output limit exceeded (100 B)",
		sallyport.EndExited: "",
	} {
		if got, flag := exceeded(&sallyport.Result{End: end, Limits: held}); got != want || (flag == "") != (want == "") {
			t.Errorf("%s: %q", end, got)
		}
	}
	held[1].By = executor.ByCgroupV2
	if got, _ := exceeded(&sallyport.Result{End: sallyport.EndPIDs, Limits: held}); got != "failed: process limit exceeded (200)" {
		t.Errorf("%q", got)
	}
	if got, want := limitsLine(held[:2]), "limits: memory by cgroup-v1 (reached), pids by cgroup-v2"; got != want || limitsLine(nil) != "" {
		t.Errorf("%q", got)
	}
	cpu, peak, bytes, n := 1500*time.Millisecond, int64(3<<20), int64(0), 4
	u := executor.Usage{CPU: &cpu, PeakMemory: &peak, PeakMemoryBy: executor.ByRusage, Read: &bytes, Written: &peak, Processes: &n}
	if got, want := usageLine(u), "used: 1.5s CPU, 3 MiB peak memory (by rusage), 0 B read and 3 MiB written, 4 processes and threads at once"; got != want || usageLine(executor.Usage{}) != "" {
		t.Errorf("%q", got)
	}
}

// TestPIDsLine: a limit on processes is suspected only where nothing tells whether it was
// reached, and something was said about it or as many processes were left.
func TestPIDsLine(t *testing.T) {
	const forked, guess = "bash: fork: retry: Resource temporarily unavailable\n", "probably: process limit reached (10); raise --pids"
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
		res := &sallyport.Result{Limits: []executor.Enforced{{Limit: test.limit, Value: 10, By: test.by}}}
		res.Survivors = make([]executor.Survivor, test.left)
		if got := pidsLine(res, []byte(test.said)); got != test.want {
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
			if got := survivorsLine(left); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
