// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A reading is what the reader of a run that waits for it has of the output. The zero reading has
// nothing and takes everything. A nil one is not the reader, and takes everything.
type reading struct {
	terminal bool // the run has one: closed streams mean nothing to it

	result json.RawMessage // of a transient run, that came with the end of its output

	written atomic.Int64  // bytes
	late    chan struct{} // a write takes long; holds one
	writing atomic.Bool   // a write is in progress
	stopped atomic.Bool   // this process was asked to end the run

	mu      sync.Mutex
	gone    [2]bool // standard output and standard error, when nothing reads them here any more
	missing uint64  // bytes that the server did not retain, before others
	end     uint64  // the same, behind all others
}

// patience is how long a write takes before anything else is done, and how long a run that was ended
// is waited for by a reader that takes nothing.
const patience = time.Second

// write writes in pieces, so that a slow reader shows progress.
func (r *reading) write(to *os.File, text []byte) error {
	if r == nil {
		_, err := to.Write(text)
		return err
	}
	const piece = 64 << 10
	for len(text) > 0 {
		timer := time.AfterFunc(patience, func() {
			select {
			case r.late <- struct{}{}:
			default:
			}
		})
		r.writing.Store(true)
		n, err := to.Write(text[:min(len(text), piece)])
		r.writing.Store(false)
		timer.Stop()
		r.written.Add(int64(n))
		if err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
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
	r.mu.Lock()
	defer r.mu.Unlock()
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
	r.mu.Lock()
	defer r.mu.Unlock()
	var of struct{ End string }
	n := r.missing + r.end
	if r.end > 0 && json.Unmarshal(result, &of) == nil && of.End == "output" {
		n = r.missing
	}
	if n == 0 {
		return nil
	}
	return explain.NewError("%d bytes of output did not arrive: the server could not retain them, perhaps because its disk is full; what was printed is incomplete", n)
}

// readAll passes on all of the output until the run has ended. The run waits for this one. Where the
// reader of what is printed here takes nothing, a run that was ended keeps no one waiting for it, as
// nothing here does.
func (a *attachment) readAll(ctx context.Context) error {
	if a.out.silent { // the result has what is wanted
		return a.c.Repeat(ctx, "run/wait", map[string]any{"runId": a.run.RunID,
			"for": map[string]any{"exit": true}}, nil)
	}
	if !a.reading.terminal {
		defer a.watch(ctx)()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, over, late := make(chan error, 1), make(chan struct{}), a.reading.late
	go func() { done <- a.readPages(ctx) }() // a write cannot be ended
	for {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			select { // what is being printed comes before what is printed next
			case <-done: //nolint:errcheck // that of the context counts
			case <-time.After(patience):
			}
			return context.Cause(ctx)
		case <-late:
			a.work.Go(func() {
				if a.wasEnded(ctx) {
					close(over)
				}
			})
			late = nil // once is enough
		case <-over:
			before := a.reading.written.Load()
			select {
			case err := <-done:
				return err
			case <-time.After(patience):
			}
			if a.reading.written.Load() == before {
				a.env.Tell("the reader of the output does not read: not all of the command's output was written")
				return nil
			}
		}
	}
}

// unhold has the command, which has got a signal that asks for its end, wait no more for a reader that takes
// nothing: the server would wait for that after the end of the command as well.
func (a *attachment) unhold(ctx context.Context, over <-chan struct{}) {
	before := a.reading.written.Load()
	select {
	case <-over:
	case <-time.After(patience):
		if a.reading.writing.Load() && a.reading.written.Load() == before {
			a.say(ctx, map[string]any{"leaves": true})
		}
	}
}

// wasEnded waits for the end of the run, and reports whether its time limit or this process has ended it:
// a command here, whose pipe is full, would have written no more.
func (a *attachment) wasEnded(ctx context.Context) bool {
	var of struct{ End string }
	if a.c.Repeat(ctx, "run/wait", map[string]any{"runId": a.run.RunID,
		"for": map[string]any{"exit": true}}, nil) != nil {
		return false
	}
	text, err := wire.FetchRunResult(ctx, a.c, a.run.RunID, false)
	if err != nil || json.Unmarshal(text, &of) != nil {
		return false
	}
	return a.reading.stopped.Load() || of.End == "timed_out" || of.End == "canceled"
}

// readPages is readAll for a reader that takes everything.
func (a *attachment) readPages(ctx context.Context) error {
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
			a.reading.result = r.result
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
	_ = a.c.Repeat(ctx, "run/read", map[string]any{"runId": a.run.RunID, "after": 0, "maxBytes": 1,
		"reader": what}, nil)
}
