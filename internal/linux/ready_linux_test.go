// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// readyIn returns the task that waits in a sandbox; nil for none.
func readyIn(s *Shared) *ready {
	all := &s.host.ready
	all.mu.Lock()
	defer all.mu.Unlock()
	if i := slices.IndexFunc(all.tasks, func(r *ready) bool { return r.in == s }); i >= 0 {
		return all.tasks[i]
	}
	return nil
}

// beginning runs a job, and returns its reaper.
func (a *arena) beginning(t *testing.T, s *Shared, j *job) (pid int) {
	t.Helper()
	r := a.request(j)
	r.Args = []string{"/bin/true"}
	c, err := s.Start(context.Background(), r, nulls(t))
	must(t, err)
	pid = c.PID()
	if e := finish(t, c); e.Code != 0 || e.Broken != nil {
		t.Errorf("%+v", e)
	}
	return pid
}

// TestReady: a task waits for the second command of a sandbox that is like the first, and not for others. What kills
// it is not seen.
func TestReady(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	closed := a.policy().WithEntries(sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny))
	tests := []struct {
		name    string
		job     job // after two ordinary ones
		disturb func(t *testing.T, r *ready)
		used    bool
	}{
		{"alike", job{}, nil, true},
		{"another directory", job{dir: a.ws + "/dir"}, nil, true},
		{"more calls allowed", job{allow: []string{"ptrace"}}, nil, false},
		{"another policy", job{policy: &closed}, nil, false},
		{"without an observer", job{blind: true}, nil, false},
		{"another /tmp", job{tmp: "host"}, nil, false},
		{"ping", job{allow: []string{"icmp"}}, nil, false},
		{"its reaper killed", job{}, func(t *testing.T, r *ready) { killUntilGone(t, childOf(t, r)) }, false},
		{"later", job{}, func(t *testing.T, r *ready) {
			if !r.timer.Stop() || readyTime > 30*time.Second {
				t.Error("it waits longer than 30 seconds")
			}
			for r.timer.Reset(0); readyIn(r.in) != nil; {
				runtime.Gosched()
			}
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := a.open(t, a.policy())
			defer s.Close()
			for range 2 {
				a.beginning(t, s, &job{})
			}
			r := readyIn(s)
			if r == nil {
				t.Fatal("no task waits")
			}
			<-r.made
			pid := childOf(t, r)
			if test.disturb != nil {
				test.disturb(t, r)
			}
			got := a.beginning(t, s, &test.job)
			if test.used && got != pid || !test.used && got == pid {
				t.Errorf("process %d ran, and %d waited", got, pid)
			}
		})
	}
}

// readySandbox returns a sandbox in which a task waits for the second command, and the reaper of that task.
func readySandbox(t *testing.T) (a *arena, s *Shared, reaper int) {
	t.Helper()
	a = newArena(t)
	s = a.open(t, a.policy())
	a.beginning(t, s, &job{})
	r := readyIn(s)
	if r == nil {
		t.Fatal("no task waits")
	}
	return a, s, childOf(t, r)
}

// childOf returns the reaper that waits: the one whose command is this program still.
func childOf(t *testing.T, r *ready) int {
	t.Helper()
	<-r.made
	self, err := os.ReadFile("/proc/self/comm")
	must(t, err)
	for {
		for _, line := range childrenBelow(os.Getpid()) {
			pid, name, _ := strings.Cut(line, " ")
			children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
			comm, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(children)) + "/comm")
			if strings.HasPrefix(name, "memfd:") && string(comm) == string(self) {
				n, err := strconv.Atoi(pid)
				must(t, err)
				return n
			}
		}
		runtime.Gosched()
	}
}

// killUntilGone kills a reaper, and waits until all in its namespace is gone.
func killUntilGone(t *testing.T, pid int) {
	t.Helper()
	must(t, unix.Kill(pid, unix.SIGKILL))
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		must(t, err)
		if _, rest, _ := strings.Cut(string(b), ") "); strings.HasPrefix(rest, "Z") {
			return
		}
		runtime.Gosched()
	}
}

// TestReadyEnds: nothing waits when the sandbox or the host is closed, or the holder killed, nor in more
// sandboxes than may have a task.
func TestReadyEnds(t *testing.T) {
	testenv.RunAsOrdinary(t)
	ends := map[string]func(t *testing.T, a *arena, s *Shared){
		"sandbox closed": func(t *testing.T, _ *arena, s *Shared) { must(t, s.Close()) },
		"holder killed":  func(t *testing.T, _ *arena, s *Shared) { killHolder(t, s) },
		"host closed":    func(t *testing.T, a *arena, _ *Shared) { must(t, a.host.Close()) },
		"others used": func(t *testing.T, a *arena, _ *Shared) {
			for range maxReady {
				a.beginning(t, a.open(t, a.policy()), &job{})
			}
			a.host.ready.making.Wait()
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			a, s, pid := readySandbox(t)
			end(t, a, s)
			if readyIn(s) != nil {
				t.Error("a task waits")
			}
			if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("its process: %v", err)
			}
		})
	}
}

// TestReadySeesChanges: a task that waits has the mounts of the last command. What changes until the next one is seen
// all the same.
func TestReadySeesChanges(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	s := a.open(t, a.policy())
	must(t, os.Mkdir(a.ws+"/.codex", 0o755))
	for range 2 {
		a.beginning(t, s, &job{})
	}
	<-readyIn(s).made
	must(t, os.Rename(a.ws+"/.codex", a.ws+"/moved"))
	must(t, os.Mkdir(a.ws+"/.codex", 0o755))
	e := mustExit(t, a, s, nil, `: >.codex/new`)
	if _, err := os.Lstat(a.ws + "/.codex/new"); e.Code == 0 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("written: %+v, %v", e, err)
	}
	if e := mustExit(t, a, s, nil, `: >moved/new`); e.Code != 0 {
		t.Errorf("a directory with an ordinary name: %+v", e)
	}
}

// TestReadyOldLimits: a task that waits has the limits that this process had. Where they are below those that the
// command gets, it starts without the task.
func TestReadyOldLimits(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a, s, reaper := readySandbox(t)
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", reaper, reaper))
	must(t, err)
	command, err := strconv.Atoi(strings.TrimSpace(string(b)))
	must(t, err)
	must(t, unix.Prlimit(command, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}, nil))
	if got := a.beginning(t, s, &job{}); got == reaper {
		t.Error("the task with the old limits ran")
	}
}
