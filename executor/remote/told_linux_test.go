// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// startTold starts a process on a server that has some capabilities, and answers one request after another
// about it; the last answer again and again. It runs in a bubble.
func startTold(t *testing.T, can map[string]bool, answers ...any) (*scripted, executor.Process, func()) {
	t.Helper()
	start := []any{nil, exists}
	s := &scripted{t: t, reply: func(_ int, m *wire.Message) any {
		list := &answers
		switch m.Method {
		case "initialize":
			return map[string]any{"sessionId": "s", "environmentInfo": map[string]any{"capabilities": can}}
		case "process/start":
			list = &start
		}
		answer := (*list)[0]
		if len(*list) > 1 {
			*list = (*list)[1:]
		}
		return answer
	}}
	e := New(Options{Dial: s.dial})
	spec := shellSpec("true")
	spec.Policy = sandbox.FullAccess()
	p, err := e.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s, p, func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		s.work.Wait()
	}
}

// TestTold: what a server says of the end of a process counts where it is understood, and is asked for where
// the message with it was lost.
func TestTold(t *testing.T) {
	ended := wire.ReadResult{Chunks: []wire.Chunk{}, NextSeq: 3, Exited: true,
		ExitCode: new(int), Closed: true}
	with := func(text string) wire.ReadResult { r := ended; r.Outcome = json.RawMessage(text); return r }
	can := map[string]bool{"processPrivateTmp": true, "processConfine": true}
	outcomeOf := func(can map[string]bool, answers ...any) (exit *executor.Exit, reads int) {
		synctest.Test(t, func(t *testing.T) {
			s, p, end := startTold(t, can, answers...)
			defer end()
			var err error
			if exit, err = p.Wait(); err != nil {
				t.Error(err)
			}
			reads = s.count("process/read")
		})
		return exit, reads
	}
	least, once := outcomeOf(map[string]bool{"processPrivateTmp": true}, ended)
	for _, test := range []struct {
		name    string
		answers []any
		limit   string // of the exit
		reads   int    // more than of a server that tells nothing
	}{
		{"later", []any{ended, with(`{"limit":"pids"}`)}, "pids", 1},
		{"never", []any{ended}, "", 1},
		{"not understood", []any{with(`{"limit":7,"sandbox":{"level":"x"},"survivorsBy":"x"}`)}, "", 1},
	} {
		exit, reads := outcomeOf(can, test.answers...)
		want := *least
		want.Limit = test.limit
		if test.limit != "" {
			want.Sandbox, exit.Sandbox = executor.Sandbox{}, executor.Sandbox{}
		}
		if fmt.Sprintf("%+v", *exit) != fmt.Sprintf("%+v", want) || reads != once+test.reads {
			t.Errorf("%s: %+v, want %+v; %d reads, want %d", test.name, exit, want, reads, once+test.reads)
		}
	}
}

// TestAwaitTold: whether a process waits for input is asked of servers that know it, and what they do
// not know is not supported.
func TestAwaitTold(t *testing.T) {
	running := wire.ReadResult{Chunks: []wire.Chunk{}, NextSeq: 1}
	for _, test := range []struct {
		name   string
		can    bool
		gone   bool // who asks
		answer any
		want   error
		asked  int
	}{
		{"no such method", false, false, wire.AwaitResult{}, errors.ErrUnsupported, 0},
		{"not known there", true, false, wire.AwaitResult{Unknown: true}, errors.ErrUnsupported, 1},
		{"ended", true, false, wire.AwaitResult{}, os.ErrProcessDone, 1},
		{"given up", true, true, wire.AwaitResult{}, context.Canceled, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, p, end := startTold(t, map[string]bool{"processPrivateTmp": true, "processAwait": test.can},
				running, test.answer)
			defer end()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.gone {
				cancel()
			}
			if _, err := p.AwaitInput(ctx); !errors.Is(err, test.want) {
				t.Errorf("%s: %v", test.name, err)
			}
			if n := s.count("process/awaitInput"); n != test.asked {
				t.Errorf("%s: asked %d times", test.name, n)
			}
		})
	}
}
