// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// The variables of a child: what it does, where, and at which step it ends itself.
const (
	childState = "SALLYPORT_TEST_GUARD_STATE"
	childWork  = "SALLYPORT_TEST_GUARD_WORK"
	childPoint = "SALLYPORT_TEST_GUARD_POINT"
)

// Ways for a child to end.
const (
	childFailed = 3
	childLost   = 4
)

// child is what this binary does as a process of its own: "run" is a whole run;
// "wait" waits for the end of its input in the middle of it.
func child(what string) int {
	point, err := strconv.Atoi(os.Getenv(childPoint))
	if err != nil {
		point = -1
	}
	seen := 0
	k := &Keeper{State: os.Getenv(childState)}
	k.step = func(string) {
		if seen == point {
			die()
		}
		seen++
	}
	hold := func(h *Hold) error {
		if what == "wait" {
			fmt.Println("held")
			if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
				return err
			}
		}
		return stands(h)
	}
	if err := wholeRun(k, os.Getenv(childWork), hold); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if strings.HasPrefix(err.Error(), "lost") {
			return childLost
		}
		return childFailed
	}
	return 0
}

// die ends this process as SIGKILL does, which comes at any time.
func die() {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// stands looks many times whether every placeholder of h is there.
func stands(h *Hold) error {
	for range 40 {
		for _, p := range h.Placeholders() {
			l, err := statAt(unix.AT_FDCWD, p.Path)
			if err != nil || l.ino != p.Ino || l.dev != p.Dev {
				return fmt.Errorf("lost %s: %w, %+v", p.Path, err, l)
			}
		}
		if err := cause(h); err != nil {
			return fmt.Errorf("lost: %w", err)
		}
		runtime.Gosched()
	}
	return nil
}

// story holds two placeholders and a name, lets the name appear, and ends.
func wholeRun(k *Keeper, work string, during func(*Hold) error) error {
	h, err := k.Hold([]Claim{
		{Path: filepath.Join(work, "a"), Placeholder: true},
		{Path: filepath.Join(work, "b"), Placeholder: true},
	})
	if err != nil {
		return err
	}
	if len(h.Placeholders()) != 2 {
		return fmt.Errorf("placeholders: %v", h.Placeholders())
	}
	if err := during(h); err != nil {
		return err
	}
	if _, err := h.Finish(); err != nil {
		return fmt.Errorf("lost: %w", err)
	}
	h.Release()
	return k.Close()
}

// command returns a child that dies at a step; less than 0 is never.
func (p place) command(what string, point int) *exec.Cmd {
	p.t.Helper()
	self, err := os.Executable()
	check(p.t, err)
	cmd := exec.CommandContext(p.t.Context(), self)
	cmd.Env = append(os.Environ(), childVar+"="+what, childState+"="+p.state, childWork+"="+p.work,
		childPoint+"="+strconv.Itoa(point), "GORACE=atexit_sleep_ms=0", "GOMAXPROCS=2")
	cmd.Dir = "/"
	return cmd
}

// dies runs a whole run whose child dies at the step.
func (p place) dies(point int) {
	p.t.Helper()
	cmd := p.command("run", point)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.String() != "signal: killed" {
		p.t.Fatalf("the child did not die: %v\n%s", err, out)
	}
}

// A scene is what a child finds, and how the same comes about for a second look.
type scene struct {
	name string
	set  func(p place) (end func() error)
}

func scenes() []scene {
	nothing := func() error { return nil }
	return []scene{
		{name: "nothing there", set: func(place) func() error { return nothing }},
		{name: "shared with a living one, long entry", set: func(p place) func() error {
			k := &Keeper{State: p.state}
			h := p.hold(k, p.covers("a", "c")...)
			// As if many had come and gone.
			file := filepath.Join(p.state, journalDir, entryName(p.path("a")))
			f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
			check(p.t, err)
			_, err = f.WriteString(strings.Repeat(lineAdd(idA)+lineDrop(idA), longEntry/38))
			check(p.t, err)
			check(p.t, f.Close())
			return func() error {
				if err := stands(h); err != nil {
					return err
				}
				return k.Close()
			}
		}},
		{name: "after a dead one", set: func(p place) func() error {
			leftovers(p)
			return nothing
		}},
	}
}

// leftovers lets a child die with placeholders, and another one in the middle of
// making one.
func leftovers(p place) {
	for _, at := range []string{"directory made", "unlocked"} {
		seen := pointsOf(quickPlace(p.t))
		p.dies(slices.Index(seen, at))
		if at == "directory made" && !exists(p.path("a")) {
			p.t.Fatal("the child has left nothing")
		}
	}
}

// pointsOf returns the steps of a whole run in its order.
func pointsOf(p place) []string {
	p.t.Helper()
	var seen []string
	k := &Keeper{State: p.state}
	k.step = func(point string) { seen = append(seen, point) }
	check(p.t, wholeRun(k, p.work, stands))
	return seen
}

// TestCrash ends a process at every step, and then looks what the next start does with
// what it has left.
func TestCrash(t *testing.T) {
	testenv.RunAsOrdinary(t)
	crashes(t, nextStart)
}

// TestCrashClean ends a process at every step, and then looks what Clean does.
func TestCrashClean(t *testing.T) {
	testenv.Long(t)
	testenv.RunAsOrdinary(t)
	crashes(t, cleanUp)
}

// TestCrashUser ends a process at every step, and then looks that directories are not
// touched that the user has created since.
func TestCrashUser(t *testing.T) {
	testenv.Long(t)
	testenv.RunAsOrdinary(t)
	crashes(t, userFirst)
}

// crashes ends a process at every step of every scene, and calls then.
func crashes(t *testing.T, then func(t *testing.T, p place)) {
	t.Helper()
	var all []string
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			p := quickPlace(t)
			end := sc.set(p)
			seen := pointsOf(p)
			check(t, end())
			p.wantClean()
			all = append(all, seen...)
			for i, point := range seen {
				t.Run(fmt.Sprintf("%02d %s", i, point), func(t *testing.T) {
					p := quickPlace(t)
					end := sc.set(p)
					p.dies(i)
					check(t, end())
					then(t, p)
					p.wantClean()
				})
			}
		})
	}
	slices.Sort(all)
	want := []string{"dead holder removed", "directory made", "directory recorded", "directory removed", "entries swept", "entry opened", "entry removed",
		"entry rewritten", "entry written", "holder locked", "holder made", "holder removed", "locked", "unlocked"}
	if diff := cmp.Diff(want, slices.Compact(all)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// nextStart is a run after the crash.
func nextStart(t *testing.T, p place) {
	check(t, wholeRun(&Keeper{State: p.state}, p.work, stands))
}

// cleanUp is Clean after the crash.
func cleanUp(t *testing.T, p place) {
	r, err := Clean(p.state)
	if err != nil || len(r.Failed)+len(r.Unknown)+len(r.Replaced)+len(r.Held) > 0 {
		t.Errorf("Clean: %+v, %v", r, err)
	}
}

// userFirst is Clean after the user has created or filled directories at the names.
func userFirst(t *testing.T, p place) {
	_ = os.Remove(p.path("a"))
	check(t, os.Mkdir(p.path("a"), 0o755))
	if exists(p.path("b")) {
		check(t, os.Chmod(p.path("b"), 0o755))
		check(t, os.WriteFile(p.path("b/file"), nil, 0o600))
	}
	filled := exists(p.path("b"))
	_, err := Clean(p.state)
	check(t, err)
	if !exists(p.path("a")) || filled != exists(p.path("b/file")) {
		t.Error("a directory of the user's was removed")
	}
	check(t, os.RemoveAll(p.path("a")))
	check(t, os.RemoveAll(p.path("b")))
}

// TestManyProcesses has processes in 4 workspaces that hold the same names; some are
// killed, some kill themselves at some step, some end.
func TestManyProcesses(t *testing.T) {
	testenv.RunAsOrdinary(t)
	manyProcesses(t, 12)
}

// TestManyMoreProcesses has 200 of them.
func TestManyMoreProcesses(t *testing.T) {
	testenv.Long(t)
	testenv.RunAsOrdinary(t)
	manyProcesses(t, 50)
}

func manyProcesses(t *testing.T, each int) {
	t.Helper()
	const workspaces = 4
	first := newPlace(t)
	var wait sync.WaitGroup
	for w := range workspaces {
		p := place{t, first.state, filepath.Join(first.work, strconv.Itoa(w))}
		check(t, os.Mkdir(p.work, 0o700))
		for i := range each {
			wait.Go(func() { p.oneOfMany(i) })
		}
	}
	wait.Wait()
	r, err := Clean(first.state)
	if err != nil || len(r.Failed)+len(r.Unknown)+len(r.Replaced)+len(r.Held) > 0 {
		t.Errorf("Clean: %+v, %v", r, err)
	}
	for w := range workspaces {
		p := place{t, first.state, filepath.Join(first.work, strconv.Itoa(w))}
		p.wantClean()
	}
}

// oneOfMany runs the child number i to its end.
func (p place) oneOfMany(i int) {
	what, point := "run", -1
	switch i % 4 {
	case 0: // dies at a step that differs from child to child
		point = i
	case 1: // is killed while it holds
		what = "wait"
	}
	cmd := p.command(what, point)
	var told strings.Builder
	cmd.Stderr = &told
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Error(err)
		return
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		p.t.Error(err)
		return
	}
	if what == "wait" {
		if _, err := io.ReadFull(out, make([]byte, len("held\n"))); err != nil {
			p.t.Errorf("child %d: %v", i, err)
		}
		_ = cmd.Process.Kill()
	}
	in.Close()
	_ = cmd.Wait()
	status, ok := cmd.ProcessState.Sys().(interface{ Signaled() bool })
	killed := ok && status.Signaled()
	if killed && what == "run" && point < 0 || !killed && (what == "wait" || cmd.ProcessState.ExitCode() != 0) {
		p.t.Errorf("child %d: %v: %s", i, cmd.ProcessState, told.String())
	}
}
