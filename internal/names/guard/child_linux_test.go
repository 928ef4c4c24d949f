// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// The variables of a child: what it does, where, and at which step it ends itself.
const (
	childState = "SALLYPORT_TEST_GUARD_STATE"
	childWork  = "SALLYPORT_TEST_GUARD_WORK"
	childPoint = "SALLYPORT_TEST_GUARD_POINT"
)

// child is what this binary does as a process of its own: "run" is a whole run;
// "wait" waits for the end of its input in the middle of it.
func child(what string) int {
	point, err := strconv.Atoi(os.Getenv(childPoint))
	if err != nil {
		point = -1
	}
	seen := 0
	k := &Protector{State: os.Getenv(childState)}
	k.step = func(string) {
		if seen == point {
			die()
		}
		seen++
	}
	during := func() error {
		if what == "wait" {
			fmt.Println("held")
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		}
		return nil
	}
	if err := wholeRun(k, os.Getenv(childWork), during); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	return 0
}

// die ends this process as SIGKILL does, which comes at any time.
func die() {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// theRepository is the name of the work tree in whose git directory a run plants.
const theRepository = "w"

// wholeRun is a run that may write to a git directory: it remembers that, plants, waits, looks for
// what it has planted, and ends.
func wholeRun(k *Protector, work string, during func() error) error {
	tree := filepath.Join(work, theRepository)
	h, s, err := begin(k, tree)
	for again := new(ExistsError); errors.As(err, &again); {
		h, s, err = begin(k, tree)
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tree, ".git", "evil-"+newID()), nil, 0o600); err != nil {
		return err
	}
	if k.step != nil {
		k.step("planted")
	}
	if err := during(); err != nil {
		return err
	}
	paths, err := s.Check(nil)
	for _, p := range paths {
		_, e := k.Quarantine(p.Path, p.Why)
		err = errors.Join(err, e)
	}
	_, e := h.Finish()
	h.Release()
	return errors.Join(err, e, k.Close())
}

// begin remembers what is in a repository.
func begin(k *Protector, tree string) (*Hold, *git.Snapshot, error) {
	remains := k.Remains()
	r, err := git.Open(tree)
	if err != nil {
		return nil, nil, err
	}
	s, err := git.Take(tree, r, git.Outside{}, nil)
	if err != nil {
		return nil, nil, err
	}
	h, err := k.Hold([]Claim{{Path: filepath.Join(tree, ".codex")}})
	if err != nil {
		return nil, nil, err
	}
	if err := h.Remember(s, remains); err != nil {
		h.Release()
		return nil, nil, err
	}
	return h, s, nil
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
		{name: "beside a living one", set: func(p place) func() error {
			k := &Protector{State: p.state}
			check(p.t, p.hold(k).Remember(snapshot(p.t, p.path(theRepository)), nil))
			return func() error { return k.journal.holder.Close() } // it is killed, too
		}},
		{name: "after a dead one", set: func(p place) func() error {
			p.dies(slices.Index(pointsOf(newScene(p.t)), "planted"))
			if left := names(p.t, filepath.Join(p.path(theRepository), ".git")); len(left) != 4 {
				p.t.Fatalf("the child has left %q", left)
			}
			return nothing
		}},
	}
}

// newScene is a place with a repository.
func newScene(t testing.TB) place {
	p := quickPlace(t)
	p.repository(theRepository)
	return p
}

// pointsOf returns the steps of a whole run in its order.
func pointsOf(p place) []string {
	p.t.Helper()
	var seen []string
	k := &Protector{State: p.state}
	k.step = func(point string) { seen = append(seen, point) }
	check(p.t, wholeRun(k, p.work, func() error { return nil }))
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

// crashes ends a process at every step of every scene, and calls then.
func crashes(t *testing.T, then func(t *testing.T, p place)) {
	t.Helper()
	var all []string
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) {
			p := newScene(t)
			end := sc.set(p)
			seen := pointsOf(p)
			check(t, end())
			then(t, p)
			p.wantSettled()
			all = append(all, seen...)
			for i, point := range seen {
				t.Run(fmt.Sprintf("%02d %s", i, point), func(t *testing.T) {
					p := newScene(t)
					end := sc.set(p)
					p.dies(i)
					check(t, end())
					then(t, p)
					p.wantSettled()
				})
			}
		})
	}
	slices.Sort(all)
	want := []string{"dead holder removed", "holder locked", "holder made", "holder removed", "locked",
		"memory removed", "memory written", "planted", "unlocked"}
	if diff := cmp.Diff(want, slices.Compact(all)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// wantSettled fails unless nothing is left of what was planted, and nothing in the journal.
func (p place) wantSettled() {
	p.t.Helper()
	p.wantClean(theRepository)
	if diff := cmp.Diff([]string{"HEAD", "objects", "refs"},
		names(p.t, filepath.Join(p.path(theRepository), ".git"))); diff != "" {
		p.t.Errorf("in the git directory (-want +got):\n%s", diff)
	}
}

// nextStart is a run after the crash.
func nextStart(t *testing.T, p place) {
	check(t, wholeRun(&Protector{State: p.state}, p.work, func() error { return nil }))
}

// cleanUp is Clean after the crash.
func cleanUp(t *testing.T, p place) {
	r, err := Clean(p.state)
	if err != nil || len(r.Failed)+len(r.Unknown) > 0 {
		t.Errorf("Clean: %+v, %v", r, err)
	}
}

// TestManyProcesses has processes in 4 workspaces with a repository each; some are killed, some kill
// themselves at some step, some end.
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
		p.repository(theRepository)
		for i := range each {
			wait.Go(func() { p.oneOfMany(i) })
		}
	}
	wait.Wait()
	cleanUp(t, first)
	for w := range workspaces {
		place{t, first.state, filepath.Join(first.work, strconv.Itoa(w))}.wantSettled()
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
	if killed && what == "run" && point < 0 || !killed &&
		(what == "wait" || cmd.ProcessState.ExitCode() != 0) {
		p.t.Errorf("child %d: %v: %s", i, cmd.ProcessState, told.String())
	}
}
