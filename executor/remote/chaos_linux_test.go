// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A relay connects to a server and does it badly.
type relay struct {
	connect func(context.Context) (wire.Stream, error)
	mu      sync.Mutex
	random  *rand.Rand
	calm    bool // no more faults
	dials   int
	cuts    int
	work    sync.WaitGroup
}

var errCut = errors.New("the relay cut the connection")

// chance reports true once in n times, while there are faults.
func (r *relay) chance(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.calm && r.random.IntN(n) == 0
}

// few reports that there were too few cuts to tell.
func (r *relay) few() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cuts < 5
}

// dial connects, or does not, or makes one connection more that is dropped.
func (r *relay) dial(ctx context.Context) (wire.Stream, error) {
	r.mu.Lock()
	r.dials++
	first := r.dials == 1
	r.mu.Unlock()
	if !first && r.chance(5) {
		return nil, errCut
	}
	if r.chance(3) {
		if extra, err := r.connect(ctx); err == nil {
			_ = extra.Write([]byte(`{"id":1,"method":"initialize","params":{"clientName":"x"}}`))
			_ = extra.Close()
		}
	}
	s, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faulty{Stream: s, relay: r, sure: first}, nil
}

// stop ends the faults.
func (r *relay) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calm = true
}

// A faulty connection is cut at any message. What was on its way then arrives or does not.
type faulty struct {
	wire.Stream
	relay *relay
	sure  bool // the handshake of the first connection succeeds
	mu    sync.Mutex
	n     int
	cut   bool
}

// fault counts a message, and reports that the connection ends before it.
func (f *faulty) fault() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.cut {
		return true
	}
	if f.sure && f.n <= greeting || !f.relay.chance(80) {
		return false
	}
	f.cut = true
	f.relay.mu.Lock()
	f.relay.cuts++
	f.relay.mu.Unlock()
	if f.relay.chance(2) { // the server hears of it later, or when the session is taken over
		f.relay.work.Go(func() {
			<-time.After(5 * time.Millisecond)
			_ = f.Close()
		})
	} else {
		_ = f.Close()
	}
	return true
}

// greeting is how many messages a handshake has.
const greeting = 3

// greeted reports that the connection may fail.
func (f *faulty) greeted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.sure || f.n > greeting
}

func (f *faulty) delay() {
	if f.relay.chance(40) {
		<-time.After(time.Millisecond)
	}
}

func (f *faulty) Read() ([]byte, error) {
	message, err := f.Stream.Read()
	f.delay()
	if f.fault() {
		return nil, errCut
	}
	return message, err
}

func (f *faulty) Write(message []byte) error {
	f.delay()
	if f.greeted() && f.relay.chance(300) { // it arrives, and the connection ends behind it
		_ = f.Stream.Write(message)
		return errCut
	}
	if f.fault() {
		return errCut
	}
	return f.Stream.Write(message)
}

// talker prints numbered lines and echoes its input.
const talker = `(i=0; while [ $i -lt 20000 ]; do echo "n$i"; i=$((i+1)); done) & while read line && [ "$line" != end ]; do echo "e$line"; done; wait; exit 3`

// TestChaos: ten clients, or four in the short form, have ten sessions each at once, which talk, flood, are
// killed, or are left with their client, while connections are cut and readers are slow. Whatever happens,
// each byte of output arrives once and in order, or is counted where a session was ended, each line of
// input is written once, each end is told once, and nothing is left.
func TestChaos(t *testing.T) {
	c := newChaos(t)
	t.Cleanup(c.over) // behind the end of the server
	s := execserver.New(execserver.Options{Dir: "/", Environ: os.Environ(), Version: "test",
		Prepare: c.prepare})
	closed(t, s)
	c.connect = func(ctx context.Context) (wire.Stream, error) { return remote.Near(ctx, s) }
	var clients sync.WaitGroup
	many := 4
	if testenv.IsLong() {
		many = 10
	}
	for i := range many {
		clients.Go(func() {
			if i == 0 {
				c.leave(t)
				return
			}
			c.client(t, c.talk, c.talk, c.talk, c.flood, c.flood, c.kill, c.fall)
		})
		clients.Go(func() { c.runs(t) })
	}
	clients.Wait()
	c.noRuns(t)
}

// A chaos is clients of a server with connections that are cut, and what is known of all of them.
type chaos struct {
	connect func(context.Context) (wire.Stream, error)
	fragile bool // a start that is cut in the middle may fail
	seed    uint64
	mark    string // a variable of each process
	end     time.Time

	mu     sync.Mutex
	t      *testing.T
	relays []*relay
	counts map[string]int // of what was done
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	long, seed := 3*time.Second, rand.Uint64()
	if testenv.IsLong() {
		long = 20 * time.Second
	}
	t.Logf("seed %d", seed)
	return &chaos{
		seed: seed, mark: fmt.Sprintf("CHAOS=%d", seed), end: time.Now().Add(long), t: t,
		counts: make(map[string]int),
	}
}

// relay returns a way to the server.
func (c *chaos) relay() *relay {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &relay{connect: c.connect, random: rand.New(rand.NewPCG(c.seed, uint64(len(c.relays))))}
	c.relays = append(c.relays, r)
	return r
}

// count counts what was done.
func (c *chaos) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

// goesOn reports whether to begin once more.
func (c *chaos) goesOn(r *relay) bool {
	return !c.t.Failed() && (time.Now().Before(c.end) || r.few())
}

// client is a client with sessions at once, each again and again.
func (c *chaos) client(t *testing.T, sessions ...func(*testing.T, executor.Executor, *relay)) {
	r := c.relay()
	e := remote.NewOn(r.dial, remote.Options{})
	var all sync.WaitGroup
	for _, session := range sessions {
		all.Go(func() {
			for first := true; first || c.goesOn(r); first = false {
				session(t, e, r)
			}
		})
	}
	all.Wait()
	r.stop()
	if err := e.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	r.work.Wait()
}

// over checks what is left, when the server has ended.
func (c *chaos) over() {
	cuts, dials := 0, 0
	for _, r := range c.relays {
		cuts, dials = cuts+r.cuts, dials+r.dials
	}
	c.t.Logf("%d connections, %d cuts, %v", dials, cuts, c.counts)
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(all) == 0 {
		c.t.Errorf("%v, %q", err, all)
	}
	for _, name := range all {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), c.mark) {
			c.t.Errorf("%s is left", filepath.Dir(name))
		}
	}
}

// talk runs one process and checks its lines.
func (c *chaos) talk(t *testing.T, e executor.Executor, _ *relay) {
	var out bytes.Buffer
	p, err := e.Start(t.Context(), &executor.Spec{
		Args: []string{"/bin/sh", "-c", talker}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin", c.mark},
		PipeStdin: true,
		Policy:    sandbox.FullAccess(), AwaitStreams: true,
		OnOutput: func(_ executor.Stream, p []byte) { out.Write(p) },
	})
	if err != nil {
		if !c.fragile || !errors.Is(err, executor.ErrEndUnknown) {
			t.Errorf("Start: %v", err)
		}
		return
	}
	c.count("talk")
	n := 0
	for ; n < 500 && (n < 20 || time.Now().Before(c.end)); n++ {
		if _, err := fmt.Fprintf(p, "%d\n", n); err != nil {
			t.Errorf("Write: %v", err)
			break
		}
	}
	if _, err := p.Write([]byte("end\n")); err != nil {
		t.Errorf("Write: %v", err)
	}
	exit, err := p.Wait()
	if err != nil || exit.Code != 3 {
		t.Errorf("%+v, %v", exit, err)
	}
	numbered, echoed := 0, 0
	for line := range strings.Lines(out.String()) {
		switch line {
		case fmt.Sprintf("n%d\n", numbered):
			numbered++
		case fmt.Sprintf("e%d\n", echoed):
			echoed++
		default:
			t.Errorf("line %q after n%d and e%d", line, numbered-1, echoed-1)
			return
		}
	}
	if numbered != 20_000 || echoed != n {
		t.Errorf("%d lines and %d of input, want 20000 and %d", numbered, echoed, n)
	}
}
