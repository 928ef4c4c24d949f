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
		{"no size", []string{"--memory", "much"}, executor.Resources{}, `--memory: "much" is no size; write it like`},
		{"negative size", []string{"--disk", "-1"}, executor.Resources{}, `--disk: "-1" is no size`},
		{"zero", []string{"--output", "0"}, executor.Resources{}, "--output: 0 lets nothing run; leave the flag out for no limit"},
		{"too little", []string{"--memory", "1MiB"}, executor.Resources{Memory: 1 << 20}, "--memory: no program starts with less than 4 MiB"},
		{"no processors", []string{"--cpus", "0"}, executor.Resources{}, "--cpus: 0 lets nothing run"},
		{"an exponent", []string{"--cpus", "1e3"}, executor.Resources{}, `--cpus: "1e3" is no number of processors`},
		{"infinite", []string{"--cpus", "Inf"}, executor.Resources{}, `--cpus: "Inf" is no number of processors`},
		{"tiny", []string{"--cpus", "0.001"}, executor.Resources{CPUs: 0.001}, "--cpus: the least share of a processor is 0.01"},
		{"no processes", []string{"--pids", "0"}, executor.Resources{}, "--pids: 0 lets nothing run"},
		{"a sign", []string{"--pids", "+5"}, executor.Resources{}, `--pids: "+5" is no number of processes; write it like 200`},
		{"too many", []string{"--pids", "99999999999"}, executor.Resources{}, `--pids: "99999999999" is no number of processes`},
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
		sallyport.EndOOM:  "it wanted more memory than --memory 512MiB allows and was ended",
		sallyport.EndPIDs: "it had more processes than --pids 200 allows and was ended",
		sallyport.EndDisk: "its writable folders grew by more than --disk 1.5KiB allows, and it was ended",
		// A size without a unit.
		sallyport.EndOutput: "it printed more than --output 100 allows; the rest was not handed on",
		sallyport.EndExited: "",
	} {
		if got := limited(&sallyport.Result{End: end, Limits: held}); got != want {
			t.Errorf("%s: %q", end, got)
		}
	}
	held[1].By = executor.ByCgroupV2
	if got := limited(&sallyport.Result{End: sallyport.EndPIDs, Limits: held}); got != "it failed, and was refused processes, because --pids allows 200" {
		t.Errorf("%q", got)
	}
	if got, want := heldBy(held[:2]), "limits: memory by cgroup-v1 (met), pids by cgroup-v2"; got != want || heldBy(nil) != "" {
		t.Errorf("%q", got)
	}
	cpu, peak, bytes, n := 1500*time.Millisecond, int64(3<<20), int64(0), 4
	u := executor.Usage{CPU: &cpu, PeakMemory: &peak, PeakMemoryBy: executor.ByRusage, Read: &bytes, Written: &peak, Processes: &n}
	if got, want := used(u), "used: 1.5s of processor time, 3MiB of memory at most (by rusage), 0 read from and 3MiB written to storage, 4 processes and threads at once"; got != want || used(executor.Usage{}) != "" {
		t.Errorf("%q", got)
	}
}
