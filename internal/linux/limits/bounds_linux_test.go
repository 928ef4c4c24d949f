// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

var all = executor.Resources{Memory: 64 << 20, CPUs: 1, PIDs: 20, Disk: 1 << 30}

// ops returns the operations of steps.
func ops(steps []launch.Step) []launch.Op {
	var out []launch.Op
	for _, s := range steps {
		out = append(out, s.Op)
	}
	return out
}

// TestAtWithoutGroups checks what enforces each limit where there are no control groups.
func TestAtWithoutGroups(t *testing.T) {
	testenv.RunAsOrdinary(t)
	b := New(&Groups{Disabled: true}, all)
	defer b.Release()
	pids, command := executor.ByRlimit, []launch.Op{launch.OpAffinity, launch.OpLimit}
	if hostfacts.SystemRoot() {
		pids, command = executor.ByWatch, command[:1]
	}
	for _, test := range []struct {
		level, pids string
		command     []launch.Op
	}{
		{plan.LevelNative, pids, command},
		{plan.LevelBwrap, executor.ByWatch, []launch.Op{launch.OpAffinity}},
		{plan.LevelLandlock, executor.ByWatch, []launch.Op{launch.OpAffinity}},
	} {
		t.Run(test.level, func(t *testing.T) {
			e, err := b.At(test.level, []string{t.TempDir()}, false)
			if err != nil || len(e.Reaper) != 0 || !cmp.Equal(ops(e.Command), test.command) {
				t.Errorf("%+v, %v", e, err)
			}
			held, limit, _ := b.Finish(launch.Usage{})
			want := []executor.Enforced{
				{Limit: executor.LimitMemory, Value: 64 << 20, By: executor.ByWatch}, {Limit: executor.LimitCPUs, Value: 1, By: executor.ByAffinity},
				{Limit: executor.LimitPIDs, Value: 20, By: test.pids}, {Limit: executor.LimitDisk, Value: 1 << 30, By: executor.ByWatch},
			}
			if diff := cmp.Diff(want, held); diff != "" || limit != "" {
				t.Errorf("limit %q, %s", limit, diff)
			}
		})
	}
	var no *sandbox.UnsupportedError
	if _, err := b.At(plan.LevelNone, nil, false); !errors.As(err, &no) || no.Need != "a limit on disk" {
		t.Errorf("a disk limit with full access: %v", err)
	}
	if e, err := (*Bounds)(nil).At(plan.LevelNative, nil, false); err != nil || e.Command != nil {
		t.Errorf("nil: %+v, %v", e, err)
	}
}

// TestAtWithGroup checks that one group serves every level, with the extra processes of
// bubblewrap.
func TestAtWithGroup(t *testing.T) {
	f := newFake(t)
	f.write(f.group("app", "memory pids"), "cgroup.subtree_control", "memory pids\n")
	groups := &Groups{tree: find(f.system("/app"), me)}
	groups.once.Do(func() {})
	b := New(groups, all)
	for _, test := range []struct{ level, pids string }{
		{plan.LevelNative, "21"}, {plan.LevelBwrap, "23"}, {plan.LevelLandlock, "21"},
	} {
		e, err := b.At(test.level, nil, false)
		if err != nil || !cmp.Equal(ops(e.Command), []launch.Op{launch.OpAffinity}) {
			t.Fatalf("%s: %+v, %v", test.level, e, err)
		}
		var files launch.Files
		if b.Files(&files); files.Cgroup == nil || len(files.Join) != len(e.Reaper) {
			t.Fatalf("%s: %+v", test.level, files)
		}
		if got := read(files.Cgroup.Name(), "pids.max"); !strings.HasPrefix(got, test.pids) {
			// a plain file keeps its length
			t.Errorf("%s: pids.max is %q, want %s", test.level, got, test.pids)
		}
	}
	b.Watch(func() []int { return nil }, func() { t.Error("a limit was exceeded") })
	held, limit, used := b.Finish(launch.Usage{})
	var by []string
	for _, l := range held {
		by = append(by, l.By)
	}
	if want := []string{executor.ByCgroupV2, executor.ByAffinity, executor.ByCgroupV2,
		executor.ByWatch}; !cmp.Equal(by, want) {
		t.Errorf("%q, want %q", by, want)
	}
	// The fake counts two processes that were killed and four that were refused.
	if limit != executor.LimitMemory || !held[0].Hit || !held[2].Hit || *used.PeakMemory != 4096 ||
		used.PeakMemoryBy != executor.ByCgroupV2 {
		t.Errorf("limit %q, %+v, %+v", limit, held, used)
	}
	b.Release()
	b.Release()
	if err := groups.Close(); err != nil {
		t.Error(err)
	}
}

// TestExceeded watches a tree that is beyond its limit: it is killed once.
func TestExceeded(t *testing.T) {
	for limit, r := range map[string]executor.Resources{
		executor.LimitPIDs: {PIDs: 1}, executor.LimitMemory: {Memory: executor.LeastMemory},
	} {
		t.Run(limit, func(t *testing.T) {
			ballast := bytes.Repeat([]byte{1}, 2*executor.LeastMemory)
			b := New(&Groups{Disabled: true}, r)
			defer b.Release()
			if _, err := b.At(plan.LevelLandlock, nil, false); err != nil {
				t.Fatal(err)
			}
			killed := make(chan struct{})
			b.Watch(func() []int { return []int{os.Getpid()} }, func() { close(killed) })
			<-killed
			held, ended, used := b.Finish(launch.Usage{})
			if ended != limit || !held[0].Hit || limit == executor.LimitMemory &&
				*used.PeakMemory < int64(len(ballast)) {
				t.Errorf("ended by %q, %+v, %+v", ended, held, used)
			}
			ballast[0]++ // alive until here
		})
	}
}

func TestExplain(t *testing.T) {
	b := New(&Groups{Disabled: true}, executor.Resources{})
	defer b.Release()
	join := &launch.StepError{Step: launch.Step{Op: launch.OpJoin}, Errno: syscall.EACCES}
	for _, test := range []struct {
		name  string
		err   error
		group bool
	}{
		{"no group", &launch.CgroupError{Err: syscall.ENOENT}, true}, {"list of tasks", join, true},
		{"another step", &launch.StepError{Step: launch.Step{Op: launch.OpExec}, Errno: syscall.EACCES}, false},
		{"namespaces", &launch.StepError{Index: -1, Errno: syscall.EPERM}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := b.Explain(test.err)
			var no *sandbox.UnsupportedError
			if errors.As(got, &no) != test.group || !test.group && !errors.Is(got, test.err) {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestProcessorsAreSeen: beside a control group with a quota the command is kept to as many processors,
// which is what programs count.
func TestProcessorsAreSeen(t *testing.T) {
	f := newFake(t)
	f.write(f.group("app", "cpu"), "cgroup.subtree_control", "cpu\n")
	groups := &Groups{tree: find(f.system("/app"), me)}
	groups.once.Do(func() {})
	b := New(groups, executor.Resources{CPUs: 1})
	defer b.Release()
	e, err := b.At(plan.LevelNative, nil, false)
	if err != nil || !cmp.Equal(ops(e.Command), []launch.Op{launch.OpAffinity}) {
		t.Fatalf("%+v, %v", e, err)
	}
	held, _, _ := b.Finish(launch.Usage{})
	if len(held) != 1 || held[0].By != executor.ByCgroupV2 {
		t.Errorf("%+v", held)
	}
}
