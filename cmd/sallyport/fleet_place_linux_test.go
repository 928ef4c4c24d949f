// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestFleetPlacement: a run goes to a node whose labels and level match, most free slots first; no node takes
// more than it has; without a free slot a run fails, or waits.
func TestFleetPlacement(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newFleet(t, nil)
	s.node(t, "a", "--slots", "1", "--label", "zone=a")
	s.node(t, "b", "--slots", "3", "--label", "zone=b", "--label", "disk=fast")
	detach := func(flags ...string) []string {
		return append(append([]string{"run", "--remote", s.url, "--detach"}, flags...), "--", "sleep", "1000")
	}
	var ids []string
	for i := range 2 { // most free slots first
		id := s.prints(t, detach()...)
		if ids = append(ids, id); !strings.HasPrefix(id, "b-1-") {
			t.Errorf("start %d: %s is not on b", i, id)
		}
	}
	id := s.prints(t, "run", "--remote", s.url+"?label=zone=a", "--detach", "--", "sleep", "1000")
	if !strings.HasPrefix(id, "a-1-") {
		t.Errorf("%s is not on a", id)
	}
	s.fails(t, 125, "no free slot", "run", "--remote", s.url+"?label=zone=a", "--", "true")
	s.fails(t, 125, "no node with the labels", "run", "--remote", s.url+"?label=zone=a&label=disk=fast", "--", "true")
	s.fails(t, 125, "unknown", "run", "--remote", s.url+"?zone=a", "--", "true")
	s.fails(t, 125, "--creds", "run", "--remote", s.url, "--remote-token-file", "x", "--", "true")
	s.fails(t, 125, "--queue needs", "run", "--queue", "1s", "--", "true")
	if out := s.prints(t, "run", "--remote", s.url+"?label=disk=fast", "--", "echo", "hello"); out != "hello" {
		t.Errorf("%q", out)
	}
	for _, n := range s.lists(t, "nodes") {
		if want := map[string]int{"a": 0, "b": 1}[n.Name]; n.Free != want || n.State != "ready" {
			t.Errorf("%+v, want %d free slots", n, want)
		}
	}
	waits := s.client(t, "run", "--remote", s.url+"?label=zone=a", "--queue", "10m", "--", "echo", "queued")
	s.prints(t, "kill", "--remote", s.url, id)
	if code := waits.code(t); code != 0 {
		t.Errorf("queued: exit code %d, %s", code, waits.log)
	}
	if list := s.prints(t, "ps", "--remote", s.url); strings.Count(list, "running") != len(ids) {
		t.Errorf("%s", list)
	}
}

// TestFleetNoOvercommit: of many runs that are started at once as many start as there are slots.
func TestFleetNoOvercommit(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newFleet(t, nil)
	s.node(t, "a", "--slots", "2")
	s.node(t, "b", "--slots", "3")
	const slots, tries = 5, 16
	var work sync.WaitGroup
	var mu sync.Mutex
	count := make(map[string]int)
	for range tries {
		work.Go(func() {
			out, errs, code := s.does(t, "run", "--remote", s.url, "--detach", "--", "sleep", "1000")
			what := strings.SplitN(out, "-", 2)[0]
			if code == 125 && strings.Contains(errs, "no free slot") {
				what = "none"
			} else if code != 0 {
				t.Errorf("exit code %d, %s", code, errs)
			}
			mu.Lock()
			defer mu.Unlock()
			count[what]++
		})
	}
	work.Wait()
	if count["a"] != 2 || count["b"] != 3 || count["none"] != tries-slots {
		t.Errorf("%v", count)
	}
}

// client starts sallyport as a client that goes on.
func (s *fleetSite) client(t *testing.T, args ...string) *fleetProcess {
	t.Helper()
	p := &fleetProcess{Cmd: s.at(t, "client", args...), log: new(lockedBuffer), over: make(chan struct{})}
	p.Stdout, p.Stderr = p.log, p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait() // ProcessState tells it
		close(p.over)
	}()
	t.Cleanup(func() { p.end(t, syscall.SIGKILL) })
	return p
}

// TestFleetDrain: a node that is drained takes nothing new, what runs there goes on or is ended at the
// deadline, and then the node leaves with exit code 0.
func TestFleetDrain(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newFleet(t, nil)
	a := s.node(t, "a", "--label", "name=a")
	b := s.node(t, "b", "--label", "name=b")
	door := filepath.Join(s.work, "door")
	if err := syscall.Mkfifo(door, 0o600); err != nil {
		t.Fatal(err)
	}
	run := s.client(t, "run", "--remote", s.url+"?label=name=a", "-C", s.work, "--", "sh", "-c",
		"echo up; read x <door; echo $x")
	awaits(t, "the run has begun", func() bool { return strings.Contains(run.log.String(), "up\n") })
	s.prints(t, "fleet", "drain", "--no-wait", "a")
	s.awaitNode(t, "a", "draining")
	s.fails(t, 125, "no node with the labels", "run", "--remote", s.url+"?label=name=a", "--", "true")
	s.prints(t, "fleet", "undrain", "a")
	s.awaitNode(t, "a", "ready")
	s.prints(t, "run", "--remote", s.url+"?label=name=a", "--", "true")
	drained := s.client(t, "fleet", "drain", "a")
	s.awaitNode(t, "a", "draining")
	if id := s.prints(t, "run", "--remote", s.url, "--detach", "--", "sleep", "1000"); !strings.HasPrefix(id, "b-") {
		t.Errorf("%s is not on b", id)
	}
	select {
	case <-drained.over:
		t.Errorf("it is drained while something runs: %s", drained.log)
	default:
	}
	if err := os.WriteFile(door, []byte("done\n"), 0o600); err != nil {
		t.Error(err)
	}
	if code := run.code(t); code != 0 || run.log.String() != "up\ndone\n" {
		t.Errorf("exit code %d, %q", code, run.log)
	}
	if code := drained.code(t); code != 0 {
		t.Errorf("drain: exit code %d, %s", code, drained.log)
	}
	if code := a.code(t); code != 0 {
		t.Errorf("the node: exit code %d, %s", code, a.log)
	}
	s.awaitNode(t, "a", "")
	s.prints(t, "fleet", "drain", "--deadline", "1s", "b") // with a run that does not end by itself
	if code := b.code(t); code != 0 {
		t.Errorf("the node: exit code %d, %s", code, b.log)
	}
	if nodes := s.lists(t, "nodes"); len(nodes) != 0 {
		t.Errorf("%+v", nodes)
	}
	s.fails(t, 125, "no node", "run", "--remote", s.url, "--", "true")
	s.fails(t, 125, "no node", "fleet", "drain", "b")
}
