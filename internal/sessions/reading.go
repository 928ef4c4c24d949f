// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/failure"
	"github.com/sallyport-dev/sallyport/internal/wire"
)

// A reading is what the reader of a run that waits for it has of the output. The zero reading has
// nothing and takes everything. A nil one is not the reader, and takes everything.
type reading struct {
	terminal bool // the run has one: closed streams mean nothing to it

	mu   sync.Mutex
	gone [2]bool // standard output and standard error, when nothing reads them here any more

	missing uint64 // bytes that the server did not retain, before others
	end     uint64 // the same, behind all others
}

func number(stream string) int {
	if stream == "stderr" {
		return 1
	}
	return 0
}

// closed reports whether a stream takes nothing any more.
func (r *reading) closed(stream string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone[number(stream)]
}

// close notes that a stream takes nothing any more.
func (r *reading) close(stream string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone[number(stream)] = true
}

// lost reports whether err, of a write to a stream, says that its reader has gone. The command, to
// which that is said with the next read, finds out as it would here.
func (r *reading) lost(stream string, err error) bool {
	if r == nil || r.terminal || !errors.Is(err, syscall.EPIPE) {
		return false
	}
	r.close(stream)
	return true
}

// params returns what the server is told of the reader with a read.
func (r *reading) params() map[string]any {
	return map[string]any{"stdoutClosed": r.closed("stdout"), "stderrClosed": r.closed("stderr")}
}

// misses counts what is missing before a chunk.
func (r *reading) misses(c wire.RunChunk) {
	r.missing += r.end
	r.end = c.Missing
	if len(c.Chunk) > 0 {
		r.missing += r.end
		r.end = 0
	}
}

// complete returns an error if output is missing that the run with that result has printed. What is
// beyond a limit of its output is not.
func (r *reading) complete(result json.RawMessage) error {
	var of ended
	n := r.missing + r.end
	if r.end > 0 && json.Unmarshal(result, &of) == nil && of.End == "output" {
		n = r.missing
	}
	if n == 0 {
		return nil
	}
	return failure.New("%d bytes of the output did not arrive: the server could not retain them, as where its disk is full; what was printed is incomplete", n)
}

// readAll hands on all of the output until the run has ended. The run waits for this one.
func (a *attachment) readAll(ctx context.Context) error {
	if a.out.silent { // the result has what is wanted
		return a.c.Repeat(ctx, "run/wait", map[string]any{"runId": a.run.RunID, "for": map[string]any{"exit": true}}, nil)
	}
	if !a.reading.terminal {
		defer a.watch(ctx)()
	}
	r := reader{c: a.c, id: a.run.RunID, own: a.reading}
	for {
		chunks, complete, err := r.read(ctx, true)
		if err != nil {
			return err
		}
		if err := a.print(&a.out, chunks, r.next); err != nil {
			return err
		}
		if complete {
			return nil
		}
	}
}

// watch tells the run when a pipe or socket that takes its output here is read no more, before the
// next write to it: the command finds out by its own next write.
func (a *attachment) watch(ctx context.Context) (stop func()) {
	over, end, err := os.Pipe()
	if err != nil {
		return func() {} // the next write finds out
	}
	var watching sync.WaitGroup
	for stream, f := range map[string]*os.File{"stdout": a.env.Stdout, "stderr": a.env.Stderr} {
		if info, err := f.Stat(); err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
			continue
		}
		watching.Go(func() {
			if !awaitNoReader(f, over) {
				return
			}
			a.reading.close(stream)
			a.say(ctx, a.reading.params())
		})
	}
	return func() {
		_ = end.Close()
		watching.Wait()
		_ = over.Close()
	}
}

// say tells the server something about the reader of the run, which may have ended.
func (a *attachment) say(ctx context.Context, what map[string]any) {
	_ = a.c.Repeat(ctx, "run/read", map[string]any{"runId": a.run.RunID, "after": 0, "maxBytes": 1, "reader": what}, nil)
}

// resultOf returns the result of a run that has ended, with or without its output. With it, it comes in
// parts: one message may not carry it.
func resultOf(ctx context.Context, c client, id string, output bool) (json.RawMessage, error) {
	var text []byte
	for {
		var got struct {
			wire.RunResult
			Result json.RawMessage `json:"result"`
		}
		params := map[string]any{"runId": id, "output": output}
		if output {
			params["from"] = len(text)
		}
		if err := c.Repeat(ctx, "run/result", params, &got); err != nil {
			return nil, err
		}
		if got.Result != nil { // all of it, also from servers that know no parts
			return got.Result, nil
		}
		text = append(text, got.Part...)
		switch {
		case got.Complete:
			return text, nil
		case len(got.Part) == 0:
			return nil, failure.New("the server sent a part of a result that is empty")
		}
	}
}
