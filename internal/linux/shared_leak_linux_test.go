// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
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

// What is left of sandboxes, as /proc tells.
type leftovers struct {
	processes   []string // below this one
	mounts      string   // of this process
	descriptors []string // handles, sockets, trees and so on that this process has open, but
	kept        int      // mount namespaces
	strangers   []string // processes anywhere whose mounts name the arena
	state       []string // files in the state directory
}

func look(t testing.TB, base string) (l leftovers) {
	t.Helper()
	l.processes = childrenBelow(os.Getpid())
	b, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	l.mounts = string(b)
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range fds {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(to, "/proc/") {
			to = strings.TrimRight(to, "0123456789]") // numbers differ
			if to == "mnt:[" {
				l.kept++
			} else {
				l.descriptors = append(l.descriptors, to)
			}
		}
	}
	slices.Sort(l.descriptors)
	all, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	must(t, err)
	for _, name := range all {
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), base) {
			l.strangers = append(l.strangers, name)
		}
	}
	for _, pattern := range []string{"tmp/*", "guard/[hm]-*"} {
		// private directories, and what protectors remember
		list, err := filepath.Glob(base + "/state/sallyport/" + pattern)
		must(t, err)
		l.state = append(l.state, list...)
	}
	return l
}

// childrenBelow names the processes below one.
func childrenBelow(pid int) (out []string) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(word)
			if err != nil {
				continue
			}
			name, _ := os.ReadFile("/proc/" + word + "/comm")
			out = append(out, word+" "+strings.TrimSpace(string(name)))
			out = append(out, childrenBelow(n)...)
		}
	}
	return out
}

// gone waits until nothing is left that was not there before, but sets of mounts that are kept: what was
// killed may be on its way out.
func (before *leftovers) gone(t testing.TB, base string, kept int) {
	t.Helper()
	var now leftovers
	for end := time.Now().Add(10 * time.Second); ; {
		now = look(t, base)
		if len(now.processes) <= len(before.processes) && len(now.strangers) <= len(before.strangers) &&
			len(now.descriptors) <= len(before.descriptors) || time.Now().After(end) {
			break
		}
	}
	if len(now.processes) > len(before.processes) {
		t.Errorf("processes are left: %q, before %q", now.processes, before.processes)
	}
	if len(now.strangers) > len(before.strangers) {
		t.Errorf("processes have its mounts: %q", now.strangers)
	}
	if now.mounts != before.mounts {
		t.Errorf("mounts are left:\n%s\nbefore:\n%s", now.mounts, before.mounts)
	}
	if now.kept != kept {
		t.Errorf("%d mount namespaces are open, of which %d are to be kept", now.kept, kept)
	}
	if len(now.descriptors) > len(before.descriptors) {
		more := slices.Clone(now.descriptors)
		for _, d := range before.descriptors {
			if i := slices.Index(more, d); i >= 0 {
				more = slices.Delete(more, i, i+1)
			}
		}
		t.Errorf("%q are open, and were not among the %d before", more, len(before.descriptors))
	}
	if len(now.state) > len(before.state) {
		t.Errorf("in the state directory are %q, before %q", now.state, before.state)
	}
}

// TestSharedLeavesNothing opens and closes sandboxes, with commands in them.
func TestSharedLeavesNothing(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	rounds := testenv.Rounds(50, 1000)
	once := func(round int) {
		p := a.policy()
		if round%5 == 1 {
			p = p.WithNetwork(sandbox.NetworkProxy)
		}
		s, err := a.host.Open(context.Background(), &executor.SharedSpec{Policy: p})
		must(t, err)
		for range round % 4 {
			if res := mustRun(t, a, &job{in: s, policy: &p,
				args: sh(`sleep 1000 & echo $$`)}); res.code != 0 || res.lost != nil {
				t.Errorf("%+v", res)
			}
		}
		if round%7 == 3 {
			killHolder(t, s)
		}
		must(t, s.Close())
	}
	for round := range 8 {
		once(round)
	}
	before := look(t, a.base)
	for round := range rounds {
		once(round)
	}
	before.gone(t, a.base, 0)
}

// A leakCase is what starts many times, and may leave nothing behind.
type leakCase struct {
	name  string
	start func(a *arena, spec *executor.Spec, round int) context.Context
}

func leakCases() []leakCase {
	never := make(chan struct{})
	ready := make(chan struct{})
	close(ready)
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	return []leakCase{
		{"known mounts", func(*arena, *executor.Spec, int) context.Context { return nil }},
		{"policies that change", func(a *arena, spec *executor.Spec, round int) context.Context {
			spec.Policy = a.policy().WithEntries(sandbox.PathEntry(fmt.Sprintf("%s/%d", a.out, round%7),
				sandbox.LevelDeny))
			return nil
		}},
		{"mounts that change", func(a *arena, _ *executor.Spec, round int) context.Context {
			name := a.ws + "/.codex"
			if _, err := os.Lstat(name); err == nil {
				_ = os.Remove(name)
			} else {
				_ = os.Mkdir(name, 0o755)
			}
			return nil
		}},
		{"no such program", func(_ *arena, spec *executor.Spec, _ int) context.Context {
			spec.Args = []string{"none"}
			return nil
		}},
		{"no such directory", func(_ *arena, spec *executor.Spec, _ int) context.Context {
			spec.Dir = "/none"
			return nil
		}},
		{"a directory as the program", func(a *arena, spec *executor.Spec, _ int) context.Context {
			spec.Args = []string{a.ws}
			return nil
		}},
		{"dropped while it waits", func(_ *arena, spec *executor.Spec, _ int) context.Context {
			spec.Ready = never
			return canceled
		}},
		{"canceled while it waits", func(_ *arena, spec *executor.Spec, _ int) context.Context {
			spec.Ready = never
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			return ctx
		}},
		{"preforked for another script", func(_ *arena, spec *executor.Spec, round int) context.Context {
			spec.Ready = ready
			spec.Tmp = []string{"", "host"}[round%2]
			return nil
		}},
		{"another network", func(a *arena, spec *executor.Spec, _ int) context.Context {
			spec.Policy = a.policy().WithNetwork(sandbox.NetworkHost)
			return nil
		}},
	}
}

// TestSharedDescriptors: starts, whatever becomes of them, leave no descriptors.
func TestSharedDescriptors(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, test := range leakCases() {
		t.Run(test.name, func(t *testing.T) {
			a := newArena(t)
			for i := range 7 {
				must(t, os.Mkdir(fmt.Sprintf("%s/%d", a.out, i), 0o755))
			}
			s := a.open(t, a.policy())
			null := nulls(t)
			once := func(round int) {
				spec := a.request(&job{args: []string{"/bin/true"}})
				ctx := test.start(a, spec, round)
				if ctx == nil {
					ctx = context.Background()
				}
				if c, err := s.Start(ctx, spec, null); err == nil {
					finish(t, c)
				}
			}
			for round := range 10 {
				once(round)
			}
			before := look(t, a.base)
			rounds := 15
			if test.name == "known mounts" {
				rounds = 200
			}
			for round := range rounds {
				once(round)
			}
			before.gone(t, a.base, len(s.roots))
		})
	}
}

// TestSharedKeepsInUse: whatever the moment is at which the mounts of known commands are forgotten,
// those that begin with them have them.
func TestSharedKeepsInUse(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	s := a.open(t, a.policy())
	var group sync.WaitGroup
	for i := range maxRoots + 4 {
		must(t, os.Mkdir(fmt.Sprintf("%s/%d", a.out, i), 0o755))
		p := a.policy().WithEntries(sandbox.PathEntry(fmt.Sprintf("%s/%d", a.out, i), sandbox.LevelWrite))
		group.Go(func() {
			for range 8 {
				res, err := a.run(t, &job{in: s, policy: &p,
					args: sh(`for d in "$1"/[0-9]*; do (: >"$d/x") 2>/dev/null && basename "$d"; done`, a.out)})
				if err != nil || res.out != fmt.Sprintln(i) {
					t.Errorf("%d may write to %q: %+v, %v", i, res.out, res, err)
				}
			}
		})
	}
	group.Wait()
	s.mu.Lock()
	kept := len(s.roots)
	for _, r := range s.roots {
		if r.uses != 1 {
			t.Errorf("mounts that no command begins with have %d uses", r.uses)
		}
		if _, err := unix.FcntlInt(r.namespace.Fd(), unix.F_GETFD, 0); err != nil {
			t.Errorf("their namespace is closed: %v", err)
		}
	}
	s.mu.Unlock()
	if kept > maxRoots {
		t.Errorf("%d sets of mounts are kept", kept)
	}
	must(t, s.Close())
	if _, err := s.Start(context.Background(), a.request(&job{args: sh(`:`)}), nulls(t)); !errors.Is(err,
		executor.ErrSharedEnded) {
		t.Error(err)
	}
}
