// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
	"github.com/sallyport-dev/sallyport/internal/fleet/node"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A fleetOf is many nodes in this process, each with a connection of its own to the real engine.
type fleetOf struct {
	nodes map[string]*node.Node
	conns map[string]*bus.Conn
}

func (s *site) many(n, slots int) *fleetOf {
	f := &fleetOf{make(map[string]*node.Node), make(map[string]*bus.Conn)}
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		f.nodes[name], f.conns[name] = s.node(name, slots, nil)
	}
	return f
}

// TestManySessions guards that 100 nodes with 10 000 idle sessions take at most 1.5 GiB in one process, that
// 1 000 starts are spread within 10 % of even, and that everybody sees the loss of 10 nodes in less than 2
// seconds.
func TestManySessions(t *testing.T) {
	nodes, sessions := testenv.Rounds(20, 100), testenv.Rounds(400, 10_000)
	starts, losses := testenv.Rounds(100, 1000), testenv.Rounds(4, 10)
	s := newSite(t)
	f := s.many(nodes, 4*starts/nodes)
	gates := []*gateway.Gateway{s.gateway(gateway.Options{}), s.gateway(gateway.Options{})}
	begin := time.Now()
	idle := make([]*client, sessions)
	inParallel(8, sessions, func(i int) {
		idle[i] = s.client(gates[i%len(gates)], nil)
		params := map[string]any{"path": "file:///"}
		if err := idle[i].Call(t.Context(), "fs/getMetadata", params, nil); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d sessions after %v, %d MiB", sessions, time.Since(begin), memory())
	if m := memory(); m > 1536 {
		t.Errorf("%d MiB of memory", m)
	}
	idle = nil

	begin = time.Now()
	placed := make([]*client, starts)
	inParallel(32, starts, func(i int) {
		placed[i] = s.client(gates[i%len(gates)], nil)
		if err := placed[i].start("p", "sleep", "1000"); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d starts after %v", starts, time.Since(begin))
	even, most, least := starts/nodes, 0, starts
	for _, n := range f.nodes {
		used := n.Record().Slots - n.Record().Free
		most, least = max(most, used), min(least, used)
	}
	t.Logf("%d to %d on a node, even is %d", least, most, even)
	if slack := max(even/10, 1); most > even+slack || least < even-slack {
		t.Errorf("%d to %d on a node, even is %d", least, most, even)
	}

	begin = time.Now()
	lost := make(map[string]bool)
	for name, c := range f.conns {
		if len(lost) < losses {
			lost[name] = true
			go c.Close()
		}
	}
	for _, g := range gates {
		for n := 0; n < losses; {
			changed := g.Registry().Changed()
			n = 0
			for _, r := range g.Registry().Nodes() {
				if r.State == fleet.Lost {
					n++
				}
			}
			if n < losses {
				<-changed
			}
		}
	}
	took := time.Since(begin)
	t.Logf("%d nodes lost after %v", losses, took)
	for _, r := range gates[0].Registry().Nodes() {
		if (r.State == fleet.Lost) != lost[r.Name] {
			t.Errorf("%s is %s", r.Name, r.State)
		}
	}
}

// memory is what this process has in memory, in MiB.
func memory() int {
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int
	_, _ = fmt.Sscan(string(text), &size, &resident)
	return resident * os.Getpagesize() >> 20
}

// inParallel calls do with 0 to n-1, so many at once.
func inParallel(at, n int, do func(int)) {
	next := make(chan int)
	var work sync.WaitGroup
	for range at {
		work.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	work.Wait()
}
