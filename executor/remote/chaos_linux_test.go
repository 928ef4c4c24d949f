// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/jsonrpc"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A relay connects to a server and does it badly.
type relay struct {
	connect func(context.Context) (jsonrpc.Stream, error)
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
func (r *relay) dial(ctx context.Context) (jsonrpc.Stream, error) {
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

// A faulty connection is cut at any message. What was on its way then arrives or does not.
type faulty struct {
	jsonrpc.Stream
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

// TestChaos: whatever happens to connections, each line of output arrives once and in order, and
// each line of input is written once and in order.
func TestChaos(t *testing.T) { chaos(t, newServer(t).Dial, false) }

// chaos is TestChaos with a server that connect reaches. Where starts are fragile, one that is cut in
// the middle may fail.
func chaos(t *testing.T, connect func(context.Context) (jsonrpc.Stream, error), fragile bool) {
	t.Helper()
	long, seed := 2*time.Second, rand.Uint64()
	if testenv.IsLong() {
		long = time.Minute
	}
	t.Logf("seed %d", seed)
	r := &relay{connect: connect, random: rand.New(rand.NewPCG(seed, 1))}
	e := remote.New(remote.Options{Dial: r.dial})
	closed(t, e)
	t.Cleanup(r.work.Wait)
	end := time.Now().Add(long)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for first := true; first || !t.Failed() && (time.Now().Before(end) || r.few()); first = false {
				talk(t, e, end, fragile)
			}
		})
	}
	wg.Wait()
	r.mu.Lock()
	r.calm = true
	t.Logf("%d connections, %d cuts", r.dials, r.cuts)
	r.mu.Unlock()
}

// talk runs one process and checks its lines.
func talk(t *testing.T, e executor.Executor, end time.Time, fragile bool) {
	var out bytes.Buffer
	p, err := e.Start(t.Context(), &executor.Spec{
		Args: []string{"/bin/sh", "-c", talker}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, PipeStdin: true,
		Policy: sandbox.FullAccess(), AwaitStreams: true, OnOutput: func(_ executor.Stream, p []byte) { out.Write(p) },
	})
	if err != nil {
		if !fragile || !errors.Is(err, executor.ErrEndUnknown) {
			t.Errorf("Start: %v", err)
		}
		return
	}
	n := 0
	for ; n < 500 && (n < 20 || time.Now().Before(end)); n++ {
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
