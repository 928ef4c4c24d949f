// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A sequence takes the output of "seq 0 N" and checks that it is that, but for gaps, which it measures.
type sequence struct {
	next    int    // the number after those of ahead
	ahead   []byte // what comes next
	bytes   int    // that came
	missing int    // that did not come, before others
	behind  []byte // a gap, up to where its length is known
	wrong   string // empty for nothing
}

func (s *sequence) take(p []byte) {
	if s.behind != nil {
		p, s.behind = append(s.behind, p...), nil
		p = s.skip(p)
	}
	for len(p) > 0 && s.wrong == "" {
		for len(s.ahead) < len(p) {
			s.ahead = append(strconv.AppendInt(s.ahead, int64(s.next), 10), '\n')
			s.next++
		}
		if bytes.Equal(p, s.ahead[:len(p)]) {
			s.bytes, s.ahead = s.bytes+len(p), s.ahead[len(p):]
			return
		}
		n := 0
		for p[n] == s.ahead[n] {
			n++
		}
		s.bytes += n
		p = s.skip(bytes.Clone(p[n:]))
	}
}

// skip goes on behind a gap, with the first whole line. Without one it waits for more.
func (s *sequence) skip(p []byte) []byte {
	rest, after, _ := bytes.Cut(p, []byte{'\n'})
	text, _, whole := bytes.Cut(after, []byte{'\n'})
	if !whole {
		s.behind = p
		return nil
	}
	n, err := strconv.Atoi(string(text))
	gap := before(n) - len(rest) - 1 - s.bytes - s.missing
	if err != nil || gap <= 0 || !strings.HasSuffix(strconv.Itoa(n-1), string(rest)) {
		s.wrong = fmt.Sprintf("%.40q behind %d bytes and %d that are missing", p, s.bytes, s.missing)
		return nil
	}
	s.missing, s.bytes, s.next, s.ahead = s.missing+gap, s.bytes+len(rest)+1, n, nil
	return after
}

// before is how many bytes are before the line of a number.
func before(n int) (sum int) {
	for digits, low := 1, 0; low < n; digits++ {
		high := min(n, max(low, 1)*10)
		sum += (high - low) * (digits + 1)
		low = high
	}
	return sum
}

// check reports what is wrong with the output up to a number, of which nothing is missing.
func (s *sequence) check(t *testing.T, what string, last int) {
	t.Helper()
	if want := before(last + 1); s.wrong != "" || s.missing > 0 || s.behind != nil || s.bytes != want {
		t.Errorf("%s: %q, %d bytes of %d, of which %d were missing", what, s.wrong, s.bytes, want, s.missing)
	}
}

// cutOff reports what is wrong with output that was cut off, with the error that says what is missing.
func (s *sequence) cutOff(t *testing.T, what string, err error) {
	t.Helper()
	var lost *remote.LostOutputError
	missing := 0
	if errors.As(err, &lost) {
		missing = int(lost.Bytes)
	} else if err != nil && !errors.Is(err, remote.ErrClosed) {
		t.Errorf("%s: %v", what, err)
	}
	if s.wrong != "" || s.missing > missing || lost == nil && s.behind != nil {
		t.Errorf("%s: %q, %d bytes are missing, and %v", what, s.wrong, s.missing, err)
	}
}

// A counted is a process whose output is counted.
type counted struct {
	executor.Process
	begin   time.Time
	streams [2]sequence
	exits   atomic.Int32
	enough  chan struct{} // closed when there is so much output, or it has ended
	reach   func()        // closes enough
}

// start starts a command. Its reader is slow now and then. Nil means that it failed, which was told.
func (c *chaos) start(t *testing.T, e executor.Executor, r *relay, script string, enough int,
	grace time.Duration) *counted {
	p, slow := &counted{begin: time.Now(), enough: make(chan struct{})}, r.chance(2)
	p.reach = sync.OnceFunc(func() { close(p.enough) })
	var err error
	p.Process, err = e.Start(t.Context(), &executor.Spec{
		Args: []string{"/bin/sh", "-c", script}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin", c.mark},
		Policy: sandbox.FullAccess(), AwaitStreams: true, Grace: grace,
		OnExit: func(int, int) { p.exits.Add(1) },
		OnOutput: func(s executor.Stream, b []byte) {
			before := p.streams[s].bytes
			p.streams[s].take(b)
			if before < enough && p.streams[s].bytes >= enough {
				p.reach()
			}
			if slow && r.chance(4) {
				<-time.After(time.Millisecond)
			}
		},
	})
	if err != nil {
		if !errors.Is(err, remote.ErrClosed) && !c.late(p.begin, err) {
			t.Errorf("Start: %v", err)
		}
		return nil
	}
	go func() {
		_, _ = p.Wait() // who asks for the end checks it
		p.reach()
	}()
	return p
}

// late reports whether an error says that something is not known any more, on a machine that took very long
// for it: a start is asked about for 10 seconds, and a process that has ended is known for 80.
func (c *chaos) late(begin time.Time, err error) bool {
	const long = 9 * time.Second
	if time.Since(begin) < long || !unknown(err) {
		return false
	}
	c.count("late")
	return true
}

// unknown reports whether an error says that an end is not known.
func unknown(err error) bool {
	var failure *remote.Error
	return errors.Is(err, executor.ErrEndUnknown) || errors.As(err, &failure) &&
		failure.Class == remote.ClassTransport
}

// ended returns the end of a process, which everyone is told who waits for it, and OnExit once; nil where
// that is not known any more.
func (c *chaos) ended(t *testing.T, p *counted, what string) (*executor.Exit, error) {
	t.Helper()
	c.count(what)
	again := make(chan *executor.Exit, 1)
	go func() {
		exit, _ := p.Wait()
		again <- exit
	}()
	exit, err := p.Wait()
	other := <-again
	if c.late(p.begin, err) {
		return nil, err
	}
	if exit == nil || other == nil || other.Code != exit.Code || p.exits.Load() != 1 {
		t.Errorf("%s: %v, %d exits: %+v; %+v", what, err, p.exits.Load(), exit, other)
		return nil, err
	}
	return exit, err
}

// flood is a session that prints much on both streams, and ends.
func (c *chaos) flood(t *testing.T, e executor.Executor, r *relay) {
	last := testenv.Rounds(5000, 20_000)
	p := c.start(t, e, r, fmt.Sprintf("seq 0 %d & seq 0 %[1]d >&2; wait; exit 4", last), 1, 0)
	if p == nil {
		return
	}
	exit, err := c.ended(t, p, "flood")
	switch {
	case exit == nil:
		return
	case exit.Code != 4 || exit.Stopped || err != nil:
		t.Errorf("flood: %v, %+v", err, exit)
	}
	p.streams[0].check(t, "flood", last)
	p.streams[1].check(t, "flood, standard error", last)
}

// endless prints numbers for ever, about as fast as all of them together are read.
const endless = "i=0; while :; do echo $i; i=$((i+1)); done"

// kill is a session that prints without end, and is stopped. It may not obey.
func (c *chaos) kill(t *testing.T, e executor.Executor, r *relay) {
	script := endless
	if r.chance(2) {
		script = "trap '' TERM; " + script
	}
	enough := 1 << (8 + rand.IntN(9))
	p := c.start(t, e, r, script, enough, 50*time.Millisecond)
	if p == nil {
		return
	}
	<-p.enough
	p.Stop()
	exit, err := c.ended(t, p, "kill")
	switch {
	case exit == nil:
		return
	case !exit.Stopped || exit.Signal != 15 && exit.Signal != 9:
		t.Errorf("kill: %+v", exit)
	}
	p.streams[0].cutOff(t, "kill", err) // what is stopped waits for no reader
}

// fall is a session that ends itself by a signal.
func (c *chaos) fall(t *testing.T, e executor.Executor, r *relay) {
	const last = 9999
	p := c.start(t, e, r, fmt.Sprintf("seq 0 %d; kill -9 $$", last), 1, 0)
	if p == nil {
		return
	}
	exit, err := c.ended(t, p, "fall")
	switch {
	case exit == nil:
		return
	case exit.Signal != 9 || exit.Stopped || err != nil:
		t.Errorf("fall: %v, %+v", err, exit)
	}
	p.streams[0].check(t, "fall", last)
}

// leave is a client that is closed while its sessions print, again and again.
func (c *chaos) leave(t *testing.T) {
	for first := true; first || !t.Failed() && time.Now().Before(c.end); first = false {
		r := c.relay()
		e := remote.NewOn(r.dial, remote.Options{})
		var all sync.WaitGroup
		begun := make(chan struct{}, 10)
		for i := range cap(begun) {
			script := "seq 0 9999; exec sleep 600"
			if i < 2 {
				script = endless
			}
			all.Go(func() {
				p := c.start(t, e, r, script, 1000, 50*time.Millisecond)
				if p == nil {
					begun <- struct{}{}
					return
				}
				c.count("leave")
				<-p.enough
				begun <- struct{}{}
				exit, err := p.Wait()
				if c.late(p.begin, err) {
					return
				}
				if n := p.exits.Load(); n > 1 || err == nil && (!exit.Stopped || n != 1) {
					t.Errorf("leave: %+v, %v, %d exits", exit, err, n)
				}
				p.streams[0].cutOff(t, "leave", err)
			})
		}
		for range cap(begun) / 2 {
			<-begun
		}
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		all.Wait()
		r.stop()
		r.work.Wait()
	}
}

// prepare makes judged runs.
func (c *chaos) prepare(_ context.Context, q *runs.Request) (*runs.Prepared, error) {
	return &runs.Prepared{
		Runner: &sallyport.Runner{Policy: sandbox.FullAccess()},
		Cmd: &sallyport.Cmd{
			Args: q.Args, Dir: "/", Env: []string{"PATH=/usr/bin:/bin", c.mark}, Grace: 50 * time.Millisecond,
			EnvPolicy: sallyport.EnvPolicy{Inherit: sallyport.InheritAll},
		},
	}, nil
}

// runs is a client with judged runs, of which it is the reader.
func (c *chaos) runs(t *testing.T) {
	r := c.relay()
	var mu sync.Mutex
	ends := make(map[string]int)
	client, err := wire.Connect(t.Context(), wire.ClientTarget{Dial: r.dial}, wire.ClientOptions{
		Name: "chaos", Extensions: true, OnNotify: func(_ string, params json.RawMessage) {
			var n struct {
				RunID string
				Event struct{ Type string }
			}
			if json.Unmarshal(params, &n) == nil && n.Event.Type == "ended" {
				mu.Lock()
				ends[n.RunID]++
				mu.Unlock()
			}
		},
	})
	if err != nil {
		t.Errorf("Dial: %v", err)
		return
	}
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			for first := true; first || c.goesOn(r); first = false {
				c.run(t, client, r, i == 0)
			}
		})
	}
	all.Wait()
	r.stop()
	if err := client.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	r.work.Wait()
	for id, n := range ends {
		if n != 1 {
			t.Errorf("run %s: %d ends were told", id, n)
		}
	}
}

// lastLine is the number of the last line of a judged run that is not killed.
const lastLine = 10_000

// run has a judged run, and reads it to its end.
func (c *chaos) run(t *testing.T, client *wire.Client, r *relay, kills bool) {
	script := fmt.Sprintf("seq 0 %d; exit 5", lastLine)
	if kills {
		script = "exec seq 0 2000000000"
	}
	id, result, err := wire.StartRun(t.Context(), client,
		&wire.RunStart{Args: []string{"sh", "-c", script}, Reader: true, Events: true})
	if err != nil || id == "" {
		t.Errorf("run/start: %s, %v", result, err)
		return
	}
	c.count("run")
	all := sync.WaitGroup{}
	if !kills {
		all.Go(func() { awaitLine(t, client, id) })
	}
	out := c.read(t, client, r, id, kills)
	all.Wait()
	if kills {
		out.cutOff(t, "run "+id, nil)
	} else {
		out.check(t, "run "+id, lastLine)
	}
	var got struct {
		Result struct {
			Code   int `json:"exit_code"`
			Signal int
		}
	}
	for range 2 { // the end is known to who asks
		if err := client.Repeat(t.Context(), "run/result", map[string]any{"runId": id, "output": false},
			&got); err != nil || !kills && got.Result.Code != 5 || kills && got.Result.Signal == 0 {
			t.Errorf("run %s: %+v, %v", id, got, err)
		}
	}
	if err := wire.RemoveRun(t.Context(), client, id); err != nil {
		t.Errorf("run/remove: %v", err)
	}
}

// read reads a run as its reader, and ends it when it has read something.
func (c *chaos) read(t *testing.T, client *wire.Client, r *relay, id string,
	kills bool) (out sequence) {
	var page wire.RunReadResult
	for after := uint64(0); !page.Complete; after = page.Next {
		page = wire.RunReadResult{}
		params := map[string]any{"runId": id, "after": after, "maxBytes": 32 << 10, "waitMs": 60_000,
			"reader": map[string]any{}}
		if err := client.Repeat(t.Context(), "run/read", params, &page); err != nil {
			t.Errorf("run/read: %v", err)
			return out
		}
		for _, chunk := range page.Chunks {
			if chunk.Missing > 0 {
				t.Errorf("run %s: %d bytes are missing at %d", id, chunk.Missing, chunk.Offset)
			}
			out.take(chunk.Chunk)
		}
		if r.chance(3) {
			<-time.After(time.Millisecond)
		}
		if kills && out.bytes > 100_000 {
			kills = false
			if err := client.Repeat(t.Context(), "run/terminate", map[string]any{"runId": id},
				nil); err != nil {
				t.Errorf("run/terminate: %v", err)
			}
		}
	}
	return out
}

// awaitLine waits for a late line, from the beginning.
func awaitLine(t *testing.T, client *wire.Client, id string) {
	const line = lastLine - 1
	end := uint64(before(line + 1))
	var got struct {
		Reason string
		After  uint64
	}
	until := map[string]any{"match": fmt.Sprintf("(?m)^%d$", line), "after": 0}
	err := client.Repeat(t.Context(), "run/wait", map[string]any{"runId": id, "for": until}, &got)
	// The end of the run comes before all else.
	if err != nil || got.Reason != "exited" && (got.Reason != "match" || got.After != end-1) {
		t.Errorf("run/wait: %+v, %v; want %d", got, err, end-1)
	}
}

// noRuns checks that no run is left.
func (c *chaos) noRuns(t *testing.T) {
	client, err := wire.Connect(t.Context(), wire.ClientTarget{Dial: c.connect},
		wire.ClientOptions{Name: "chaos", Extensions: true})
	if err != nil {
		t.Errorf("Dial: %v", err)
		return
	}
	defer client.Close()
	var got wire.RunList
	if err := client.Call(t.Context(), "run/list", nil, &got); err != nil || len(got.Runs) > 0 {
		t.Errorf("%+v are left, %v", got.Runs, err)
	}
}
