// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// lossTime is how long after its last sign of life a node may be taken for one that is alive.
const lossTime = 2 * time.Second

// TestFleetLoss: a node that dies or hangs is lost within two seconds. Its processes end with 255 and lost,
// its runs with the end lost and exit code 125. One that comes back is fenced, has ended what it had, and is
// ready again.
func TestFleetLoss(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	for _, by := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			s := newFleet(t, nil)
			g := s.gateway(t)
			mark := fmt.Sprintf("loss-%d-%d", os.Getpid(), by)
			var took []time.Duration
			for try := range 5 { // a busy machine delays some
				d := s.loses(t, g, by, fmt.Sprintf("%s-%d", mark, try), fmt.Sprintf("n%d", try))
				if took = append(took, d); d <= lossTime {
					return
				}
			}
			t.Errorf("lost after %v, want at most %v", took, lossTime)
		})
	}
}

// loses has a node be lost that has a process and a run, and returns how long that took to be known.
func (s *fleetSite) loses(t *testing.T, g *fleetProcess, by syscall.Signal, mark, name string) time.Duration {
	t.Helper()
	n := s.node(t, name, "--label", "name="+name)
	c := connectTo(t, g.first+"?label=name="+name)
	c.must("p", lasts(mark))
	run := s.client(t, "run", "--remote", s.url+"?label=name="+name, "--json", "--", "sh", "-c",
		": "+mark+"-run; sleep 1000; : x")
	awaits(t, "both run", func() bool { return running(t, mark+";") == 1 && running(t, mark+"-run") > 0 })
	if err := syscall.Kill(n.pid(), by); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if e := c.ends("p"); e.ExitCode != 255 || !e.Lost {
		t.Errorf("%+v", e)
	}
	took := time.Since(begin)
	if code := run.code(t); code != 125 || !strings.Contains(run.log.String(), `"end":"lost"`) {
		t.Errorf("exit code %d, %s", code, run.log)
	}
	s.awaitNode(t, name, "lost")
	if by == syscall.SIGKILL {
		s.node(t, name, "--label", "name="+name) // it has ended what the last one left
	} else if err := syscall.Kill(n.pid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.awaitNode(t, name, "ready")
	awaits(t, "nothing runs", func() bool { return running(t, mark) == 0 })
	awaits(t, "its slots are free", func() bool {
		for _, n := range s.lists(t, "nodes") {
			if n.Name == name {
				return n.Free == n.Slots
			}
		}
		return false
	})
	if out := s.prints(t, "run", "--remote", s.url+"?label=name="+name, "--", "echo", "again"); out != "again" {
		t.Errorf("%q", out)
	}
	s.prints(t, "fleet", "drain", name)
	return took
}

// TestFleetOnce: a start with the same key runs once, whatever became of the answer, of the client and of the
// gateway.
func TestFleetOnce(t *testing.T) {
	t.Parallel()
	s := newFleet(t, nil)
	s.node(t, "a", "--slots", "64")
	s.node(t, "b", "--slots", "64")
	other := s.gateway(t)
	file := filepath.Join(s.work, "starts")
	for _, test := range []struct {
		name   string
		breaks func(t *testing.T, p *fleetProxy, g *fleetProcess)
	}{
		{"the answer is lost", func(_ *testing.T, p *fleetProxy, _ *fleetProcess) { p.cut() }},
		{"the gateway is killed", func(t *testing.T, p *fleetProxy, g *fleetProcess) {
			g.end(t, syscall.SIGKILL)
			p.cut()
		}},
	} {
		for try := range testenv.Rounds(3, 30) {
			t.Run(fmt.Sprintf("%s %d", test.name, try), func(t *testing.T) {
				g := s.gateway(t)
				p := newFleetProxy(t, addressOf(g.first))
				key := strings.ReplaceAll(t.Name(), " ", "-")
				first, err := wire.Connect(t.Context(), wire.ClientTarget{URL: "ws://" + p.Addr().String()},
					wire.ClientOptions{Name: "test", Extensions: true, Resume: -1})
				if err != nil {
					t.Fatal(err)
				}
				defer first.Close()
				c := &fleetClient{Client: first, t: t}
				p.set(func() { p.deaf = true })
				lost := make(chan error, 1)
				go func() { lost <- c.starts("p", key, "echo "+key+" >>"+file+"; sleep 1") }()
				<-time.After(time.Duration(try) * 20 * time.Millisecond) // the start is somewhere on its way
				test.breaks(t, p, g)
				p.set(func() { p.deaf = false })
				if err := <-lost; err == nil {
					t.Log("the answer came")
				}
				again := connectTo(t, other.first)
				err = again.starts("p", key, "echo "+key+" >>"+file)
				failed := new(wire.Error)
				switch reason := wire.RefusalOf(err).Reason; {
				case err == nil: // the first one did not arrive
					again.ends("p")
				case !errors.As(err, &failed) || reason != "started" && reason != "lost":
					t.Errorf("%v", err)
				}
				awaits(t, "it has run", func() bool { return countIn(t, file, key) > 0 })
				if n := countIn(t, file, key); n != 1 {
					t.Errorf("it ran %d times", n)
				}
			})
		}
	}
}

// countIn counts the lines of a file that are a text.
func countIn(t *testing.T, file, line string) (n int) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(data)) {
		if strings.TrimSpace(l) == line {
			n++
		}
	}
	return n
}

// TestFleetOnceRuns: run/start with the same key, by many clients at once, is one run.
func TestFleetOnceRuns(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newFleet(t, nil)
	s.node(t, "a", "--slots", "16")
	s.node(t, "b", "--slots", "16")
	gateways := []*fleetProcess{s.gateway(t), s.gateway(t)}
	ids := make(chan string, 8)
	var work sync.WaitGroup
	for i := range cap(ids) {
		c := connectTo(t, gateways[i%2].first)
		work.Go(func() {
			id, _, err := wire.StartRun(t.Context(), c, &wire.RunStart{Args: []string{"--", "sh", "-c", "echo x >>runs"},
				Dir: s.work, Key: "one"})
			if err != nil {
				t.Error(err)
			}
			ids <- id
		})
	}
	work.Wait()
	first := <-ids
	for len(ids) > 0 {
		if id := <-ids; id != first {
			t.Errorf("%s and %s", first, id)
		}
	}
	if code := s.code(t, "wait", "--remote", s.url, first); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := countIn(t, filepath.Join(s.work, "runs"), "x"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// code is the exit code of sallyport.
func (s *fleetSite) code(t *testing.T, args ...string) int {
	t.Helper()
	_, _, code := s.does(t, args...)
	return code
}

// TestFleetRestart: the output of what a killed node had is readable, as lost, from the node that is started
// again.
func TestFleetRestart(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newFleet(t, nil)
	n := s.node(t, "a")
	mark := fmt.Sprintf("restart-%d", os.Getpid())
	id := s.prints(t, "run", "--remote", s.url, "--detach", "--", "sh", "-c", "echo said; : "+mark+"; sleep 1000; : x")
	awaits(t, "it has said it", func() bool { return s.prints(t, "logs", "--remote", s.url, id) == "said" })
	n.end(t, syscall.SIGKILL)
	s.node(t, "a")
	awaits(t, "nothing runs", func() bool { return running(t, mark) == 0 })
	if code := s.code(t, "wait", "--remote", s.url, id); code != 125 {
		t.Errorf("exit code %d", code)
	}
	if out, errs, _ := s.does(t, "logs", "--remote", s.url, id); strings.TrimSpace(out) != "said" {
		t.Errorf("%q, %q", out, errs)
	}
}

// numbers prints so many lines, slowly at the begin, so that it is cut while it prints.
func numbers(n int) string {
	return fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; [ $((i%%100)) -ne 0 ] || sleep 0.05; done", n)
}

func wantNumbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// TestFleetGateways: a client that is cut from a gateway which was killed goes on at another one. It gets all
// output once.
func TestFleetGateways(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newFleet(t, nil)
	s.node(t, "a")
	first, second := s.gateway(t), s.gateway(t)
	p := newFleetProxy(t, addressOf(first.first))
	const lines = 4000
	run := s.client(t, "run", "--remote", "ws://"+p.Addr().String(), "--", "sh", "-c", numbers(lines))
	awaits(t, "it prints", func() bool { return len(run.log.String()) > 500 })
	p.set(func() { p.to = addressOf(second.first) })
	first.end(t, syscall.SIGKILL)
	p.cut()
	if code := run.code(t); code != 0 || run.log.String() != wantNumbers(lines) {
		t.Errorf("exit code %d, %d bytes, %s", code, len(run.log.String()), tail(run.log.String()))
	}
}

func tail(s string) string { return s[max(len(s)-300, 0):] }

// TestFleetHubRestart: what runs goes on when the hub is killed and started again; sessions are found, and no
// output is lost.
func TestFleetHubRestart(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newFleet(t, nil)
	s.node(t, "a")
	g := s.gateway(t)
	const lines = 6000
	runs := []*fleetProcess{
		s.client(t, "run", "--remote", g.first, "--", "sh", "-c", numbers(lines)),
		s.client(t, "run", "--remote", s.url, "--", "sh", "-c", numbers(lines)),
	}
	id := s.prints(t, "run", "--remote", s.url, "--detach", "--", "sleep", "1000")
	for _, r := range runs {
		awaits(t, "it prints", func() bool { return len(r.log.String()) > 500 })
	}
	address := addressOf(s.url)
	s.hub.end(t, syscall.SIGKILL)
	s.startHub(t, address)
	for i, r := range runs {
		if code := r.code(t); code != 0 || r.log.String() != wantNumbers(lines) {
			t.Errorf("run %d: exit code %d, %d bytes, %s", i, code, len(r.log.String()), tail(r.log.String()))
		}
	}
	if list := s.prints(t, "ps", "--remote", s.url); !strings.Contains(list, id+"   running") {
		t.Errorf("%s", list)
	}
	s.awaitNode(t, "a", "ready")
	if out := s.prints(t, "run", "--remote", g.first, "--", "echo", "new"); out != "new" {
		t.Errorf("%q", out)
	}
}

// TestFleetPartition: a node that the hub does not reach for a second goes on; after ten seconds it is lost,
// and fenced when it comes back.
func TestFleetPartition(t *testing.T) {
	t.Parallel()
	s := newFleet(t, nil)
	p := newFleetProxy(t, addressOf(s.url))
	g := s.gateway(t)
	s.node(t, "a", "--nats", "nats://"+p.Addr().String())
	mark := fmt.Sprintf("partition-%d", os.Getpid())
	c := connectTo(t, g.first)
	c.must("p", lasts(mark))
	hold := func(d time.Duration) {
		p.set(func() { p.held = true })
		<-time.After(d)
		p.set(func() { p.held = false })
	}
	hold(500 * time.Millisecond)
	<-time.After(2 * time.Second) // nothing happens
	if len(c.exits) > 0 || running(t, mark) == 0 {
		t.Error("it ended after a short cut")
	}
	hold(10 * time.Second)
	if e := c.ends("p"); !e.Lost || e.ExitCode != 255 {
		t.Errorf("%+v", e)
	}
	awaits(t, "nothing runs", func() bool { return running(t, mark) == 0 })
	s.awaitNode(t, "a", "ready")
	again := connectTo(t, g.first)
	again.must("p", "echo new")
	if e := again.ends("p"); e.ExitCode != 0 || again.said("p") != "new\n" {
		t.Errorf("%+v, %q", e, again.said("p"))
	}
}

// TestFleetPartitionLong is TestFleetPartition for five minutes.
func TestFleetPartitionLong(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	s := newFleet(t, nil)
	p := newFleetProxy(t, addressOf(s.url))
	g := s.gateway(t)
	s.node(t, "a", "--nats", "nats://"+p.Addr().String())
	c := connectTo(t, g.first)
	mark := fmt.Sprintf("partitioned-%d", os.Getpid())
	c.must("p", lasts(mark))
	p.set(func() { p.held = true })
	<-time.After(time.Duration(testenv.Rounds(0, 300)) * time.Second)
	p.set(func() { p.held = false })
	if e := c.ends("p"); !e.Lost {
		t.Errorf("%+v", e)
	}
	awaits(t, "nothing runs", func() bool { return running(t, mark) == 0 })
	s.awaitNode(t, "a", "ready")
}
