// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// noneAfter is the time after the end of a run by which its whole tree must have ended:
// more than a busy machine needs for killed processes, and far less than any of them
// sleeps.
const noneAfter = 30 * time.Second

// survivorLevels are the levels at which every case runs: the empty one is full
// access.
var survivorLevels = []string{"native", "bwrap", "landlock", ""}

// A leftover is a command with processes that outlive it.
type leftover struct {
	name string
	// script is the command, for sh. $M marks its survivors: a number of seconds to
	// sleep. It prints "ready" when all of them run, and then ends by itself, unless it
	// is stopped.
	script string
	least  int      // survivors, at least
	most   int      // at most, with those in between that may not have ended yet; 0 means least
	names  []string // each of them has one of these
	stop   bool     // the run is stopped after "ready"
	needs  string   // a program, or nothing
	holds  bool     // all survivors have "$F" open for writing
}

// waitsFor makes a shell wait until its background process writes to the named pipe "$F".
const waitsFor = `
	read _ <"$F"; echo ready`

func leftovers() []leftover {
	return []leftover{
		{name: "double fork", script: `( (echo >"$F"; exec sleep $M) & ) &` + waitsFor, least: 1, most: 3, names: []string{"sleep", "sh"}},
		{name: "setsid", script: `setsid sh -c 'echo >"$F"; exec sleep $M' &` + waitsFor, least: 1, names: []string{"sleep", "sh"}, needs: "setsid"},
		{name: "daemon", script: `(setsid sh -c '(echo >"$F"; exec sleep $M) &' &) </dev/null >/dev/null 2>&1` + waitsFor, least: 1, most: 4, names: []string{"sleep", "sh"}, needs: "setsid"},
		{name: "nohup", script: `nohup sh -c 'echo >"$F"; exec sleep $M' >/dev/null 2>&1 &` + waitsFor, least: 1, names: []string{"sleep", "sh"}, needs: "nohup"},
		{name: "disown", script: `bash -c '(echo >"$F"; exec sleep $M) & disown'` + waitsFor, least: 1, most: 2, names: []string{"sleep", "sh", "bash"}, needs: "bash"},
		{name: "started by request", script: `mkfifo "$F.s"; (while :; do line=; read line <"$F.s"; if [ "$line" ]; then setsid sh -c "$line" & fi; done) &
			echo 'echo >"$F"; exec sleep $M' >"$F.s"` + waitsFor, least: 2, most: 3, names: []string{"sleep", "sh"}, needs: "setsid"},
		{name: "ignores signals", script: `sh -c 'trap "" TERM INT HUP QUIT USR1 USR2; echo >"$F"; while :; do sleep $M; done' &` + waitsFor, least: 1, most: 2, names: []string{"sleep", "sh"}},
		{name: "400 at once", script: `i=0; while [ $i -lt 400 ]; do sleep $M & i=$((i+1)); done; echo ready`, least: 400, names: []string{"sleep", "sh"}},
		{name: "holds the output", script: `(echo >"$F"; exec sleep $M) &` + waitsFor, least: 1, names: []string{"sleep", "sh"}},
		{name: "stopped", script: `sleep $M & kill -STOP $!; echo ready`, least: 1, names: []string{"sleep", "sh"}},
		{name: "own session and no streams", script: `setsid sh -c 'exec 0<&- 1>&- 2>&-; echo >"$F"; exec sleep $M' &` + waitsFor, least: 1, names: []string{"sleep", "sh"}, needs: "setsid"},
		{name: "a deep tree", script: `sh -c 'sh -c "sh -c \"echo >\\\"\$F\\\"; sleep $M; :\"; :"; :' &` + waitsFor, least: 2, most: 5, names: []string{"sleep", "sh"}},
		{name: "first thread has ended", script: `python3 -c 'if True:
			import ctypes, os, threading, time
			threading.Thread(target=lambda: (open(os.environ["F"], "w").write("\n"), time.sleep(float(os.environ["M"])))).start()
			ctypes.CDLL(None).pthread_exit(None)' $M &` + waitsFor, least: 1, names: []string{"python3"}, needs: "python3"},
		{name: "own subreaper", script: `python3 -c 'if True:
			import ctypes, os, time
			ctypes.CDLL(None).prctl(36, 1)
			if os.fork() == 0:
				os.setsid()
				if os.fork() == 0:
					open(os.environ["F"], "w").write("\n")
					time.sleep(float(os.environ["M"]))
				os._exit(0)
			os.wait(); time.sleep(float(os.environ["M"]))' $M &` + waitsFor, least: 2, most: 3, names: []string{"python3"}, needs: "python3"},
		{name: "grandchild of a stopped run", script: `(trap "" TERM; echo >"$F"; while :; do sleep $M; done) &` + waitsFor + `
			exec sleep $M`, stop: true, least: 1, most: 2, names: []string{"sleep", "sh"}},
		{name: "stopped run that ignores signals", script: `trap "" TERM; sleep $M & echo ready; while :; do sleep $M; done`, stop: true, least: 0, most: 3, names: []string{"sleep", "sh"}},
	}
}

// TestSurvivors checks that survivors are named, counted and killed.
func TestSurvivors(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, level := range survivorLevels {
		t.Run(levelName(level), func(t *testing.T) {
			e := executorAt(t, level)
			for _, l := range leftovers() {
				t.Run(l.name, func(t *testing.T) {
					if level != "bwrap" {
						t.Parallel() // most of a case is the wait for more output
					}
					if l.needs != "" {
						testenv.NeedProgram(t, l.needs)
					}
					exit := leave(t, e, level, &l)
					// Bubblewrap's monitor is stopped after its first status; on a busy machine
					// that may be too late for a command that ends at once.
					for attempt := 1; level == "bwrap" && len(exit.Survivors) < l.least &&
						attempt < 10; attempt++ {
						t.Logf("only %d were named", len(exit.Survivors))
						exit = leave(t, e, level, &l)
					}
					l.check(t, exit)
				})
			}
		})
	}
}

// check compares the survivors with what is expected.
func (l *leftover) check(t *testing.T, exit *executor.Exit) {
	t.Helper()
	n := len(exit.Survivors)
	if n < l.least || n > max(l.least, l.most) {
		t.Errorf("%d survivors, want %d to %d: %+v", n, l.least, max(l.least, l.most),
			exit.Survivors[:min(n, 6)])
	}
	for i, s := range exit.Survivors {
		named := slices.ContainsFunc(l.names,
			func(name string) bool { return strings.HasPrefix(s.Name, name) })
		if s.PID <= 0 || !named || (s.Command == "") != (i >= 20) || len(s.Command) > executor.CommandShown {
			t.Errorf("survivor %d: %+v", i, s)
		}
	}
}

func levelName(level string) string {
	if level == "" {
		return "full access"
	}
	return level
}

// executorAt returns an Executor that uses one level only.
func executorAt(t *testing.T, level string) *Executor {
	t.Helper()
	switch level {
	case "landlock":
		testenv.NeedLandlock(t, 3)
	case "bwrap":
		testenv.NeedProgram(t, "bwrap")
		testenv.NeedUserNS(t)
	case "native":
		testenv.NeedUserNS(t)
	}
	e := newExecutor(t)
	e.host.Only = level
	return e
}

// leave runs a command to its end and checks that no marked process runs then.
func leave(t *testing.T, e *Executor, level string, l *leftover) *executor.Exit {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-left-") //nolint:usetesting // a command has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := unix.Mkfifo(dir+"/ready", 0o600); err != nil {
		t.Fatal(err)
	}
	mark := newMark()
	held := -1
	if l.holds {
		if held, err = unix.Open(dir+"/ready", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(held)
	}
	policy := sandbox.WorkspaceWrite()
	if level == "" {
		policy = sandbox.FullAccess()
	}
	spec := newSpec(policy, "/bin/sh", "-c", l.script)
	spec.Dir = dir
	spec.Policy = policy.Bind(sandbox.Places{Dir: dir})
	spec.Env = append(spec.Env, "M="+mark, "F="+dir+"/ready")
	spec.Grace = 300 * time.Millisecond
	spec.NoCaches = true
	ready := make(chan struct{})
	var once sync.Once
	var output bytes.Buffer
	spec.OnOutput = func(_ executor.Stream, b []byte) {
		output.Write(b)
		if bytes.Contains(output.Bytes(), []byte("ready\n")) {
			once.Do(func() { close(ready) })
		}
	}
	p, err := e.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	type end struct {
		exit *executor.Exit
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		exit, err := p.Wait()
		ended <- end{exit, err}
	}()
	if l.stop {
		select {
		case <-ready:
		case <-time.After(enough):
			t.Error("there was no \"ready\"")
		}
		p.Stop()
	}
	select {
	case x := <-ended:
		if held >= 0 {
			released(t, held)
		}
		noneLeft(t, mark)
		if x.err != nil {
			t.Errorf("%v; output %q", x.err, output.String())
		}
		if want := byOf(level); x.exit.SurvivorsBy != want {
			t.Errorf("ended by %q, want %q", x.exit.SurvivorsBy, want)
		}
		return x.exit
	case <-time.After(enough):
		endMarked(mark)
		t.Fatalf("it did not end; output %q", output.String())
	}
	return nil
}

func byOf(level string) string {
	if level == "native" || level == "bwrap" {
		return executor.ByNamespace
	}
	return executor.BySubreaper
}

// newMark returns a number of seconds that no other process sleeps.
func newMark() string {
	return fmt.Sprintf("86400.%d%09d", os.Getpid(), time.Now().Nanosecond())
}

// released checks that no process holds the other end of a pipe after noneAfter.
func released(t *testing.T, fd int) {
	t.Helper()
	poll := []unix.PollFd{{Fd: int32(fd)}}
	_, _ = testenv.Poll(poll, noneAfter)
	if poll[0].Revents&unix.POLLHUP == 0 {
		t.Error("a process of the tree runs after the end")
	}
}

// noneLeft checks that marked processes end in time, by the event of their end. It looks
// several times, for processes that start others.
func noneLeft(t *testing.T, mark string) {
	t.Helper()
	end := time.Now().Add(noneAfter)
	for empty := 0; empty < 3; {
		left := markedPIDs(mark)
		if len(left) == 0 {
			empty++
			continue
		}
		empty = 0
		awaitEnd(left[0], end)
		if left = markedPIDs(mark); len(left) > 0 && time.Now().After(end) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", left[0]))
			t.Errorf("%d run after the end, such as %s", len(left), line)
			endMarked(mark)
			return
		}
	}
}

// awaitEnd waits for the end of a process.
func awaitEnd(pid int, until time.Time) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(fd)
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	_, _ = testenv.Poll(poll, time.Until(until))
}

// markedPIDs returns the running processes with a mark in their arguments or environment.
func markedPIDs(mark string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*")
	var out []int
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(f))
		if err != nil || pid == os.Getpid() {
			continue
		}
		about := []string{f + "/cmdline", f + "/environ"}
		if args, err := os.ReadFile(about[0]); err == nil && len(args) == 0 {
			about, _ = filepath.Glob(f + "/task/*/cmdline") // the first thread may have ended
		}
		if slices.ContainsFunc(about, func(name string) bool {
			text, _ := os.ReadFile(name)
			return bytes.Contains(text, []byte(mark))
		}) {
			out = append(out, pid)
		}
	}
	return out
}

// endMarked kills the processes of a failed test.
func endMarked(mark string) {
	for _, pid := range markedPIDs(mark) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
