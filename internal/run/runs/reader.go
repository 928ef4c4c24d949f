// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
)

const (
	// readerAhead is how far the output of a command is ahead of its reader before the command waits,
	// in bytes, and readerMemory how much of it is in memory: what is ahead, and what is read at once,
	// are in the half of that which has the end. So a reader misses nothing without a spill file,
	// and knows the stream of each byte.
	readerAhead  = 1 << 20
	readerMemory = 3 << 20
	// readerTime is how long a command waits for a reader whose connection has ended.
	readerTime = time.Minute
)

// A reader is the executor of a run whose command waits for one reader of its output, as it would for
// that of a pipe. Others who read the run hold nothing up.
type reader struct {
	wrapped

	mu      sync.Mutex
	output  executor.Output // of the last process; nil before the first
	process streamCloser    // likewise
	taken   uint64          // the offset after what the reader has
	closed  [2]bool         // streams that it takes no more
	left    bool            // no one is waited for any more
	reads   bool            // it has asked for output: its client knows of the run
	changed chan struct{}   // closed by the next change; nil while the command does not wait

	life   context.Context // of its connection; nil before the first
	watch  func() bool     // ends the watch of life
	absent *time.Timer     // has the reader leave; nil while it is there
}

// A streamCloser is a process with streams that can be closed.
type streamCloser interface{ CloseOutput(s executor.Stream) }

// newReader returns the reader of a run with an executor.
func newReader(by ownExecutor) *reader { return &reader{wrapped: wrapped{by}} }

// An unread is the executor of a run whose command waits for no reader.
type unread struct{ wrapped }

// A wrapped is the executor behind another one.
type wrapped struct{ ownExecutor }

// Unwrap returns it, for what only some executors can do.
func (w wrapped) Unwrap() executor.Executor { return w.ownExecutor }

// A watched is the executor of a run that is asked what its process does.
type watched struct {
	wrapped
	last *atomic.Pointer[executor.Process]
}

// Start implements [executor.Executor].
func (w watched) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	p, err := w.ownExecutor.Start(ctx, spec)
	if err == nil {
		w.last.Store(&p)
	}
	return p, err
}

// Start implements [executor.Executor].
func (u unread) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	own, next, pace := *spec, spec.OnOutput, new(output.Pace)
	own.OnOutput = func(s executor.Stream, p []byte) {
		begin := time.Now()
		next(s, p)
		pace.Wait(begin, len(p))
	}
	return u.ownExecutor.Start(ctx, &own)
}

// Start implements [executor.Executor].
func (r *reader) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	own, next, pace := *spec, spec.OnOutput, new(output.Pace)
	own.Retain.Memory = max(own.Retain.Memory, readerMemory)
	own.OnOutput = func(s executor.Stream, p []byte) {
		begin := time.Now()
		next(s, p) // it returns after Start has
		if !r.await(s) {
			pace.Wait(begin, len(p))
		}
	}
	p, err := r.ownExecutor.Start(ctx, &own)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.output, r.process = p.Output(), nil
	if c, ok := p.(streamCloser); ok && spec.TTY == nil {
		r.process = c
		for s, closed := range r.closed { // by a reader of the first attempt
			if closed {
				c.CloseOutput(executor.Stream(s))
			}
		}
	}
	return &readProcess{Process: p, reader: r}, nil
}

// A readProcess is a process whose output a reader holds up until it is stopped.
type readProcess struct {
	executor.Process
	reader *reader
}

// Stop implements [executor.Process]. What ends a command waits for no one.
func (p *readProcess) Stop() {
	p.reader.leave()
	p.Process.Stop()
}

// await waits until the reader has all but a little of the output, or takes no more of a stream. It reports
// whether there is a reader.
func (r *reader) await(s executor.Stream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.output != nil && !r.left && !r.closed[s] {
		if total, _ := r.output.Size(); total <= r.taken+readerAhead {
			break
		}
		changed := make(chan struct{})
		r.changed = changed
		r.mu.Unlock()
		<-changed
		r.mu.Lock()
	}
	return !r.left
}

// wake has await look again. The caller holds mu.
func (r *reader) wake() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func (r *reader) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	r.forget()
	r.wake()
}

// forget watches the connection of the reader no more. The caller holds mu.
func (r *reader) forget() {
	if r.watch != nil {
		r.watch()
	}
	if r.absent != nil {
		r.absent.Stop()
	}
	r.watch, r.absent = nil, nil
}

// Taken says that the reader of the run, whose connection ends with life, has the output before an
// offset, and takes no more of streams that are closed. The command waits while it is more than a MiB
// ahead of that; where it writes to a closed stream, it finds that nothing reads it. When the
// connection has ended, the command waits a minute for the next call, and then for none any more: where there
// was no second call, the answer to the start was lost, and the run is removed, as its client does not
// know of it. It has no effect on a run without a reader.
func (r *Run) Taken(life context.Context, offset uint64, stdoutClosed, stderrClosed bool) {
	rd := r.reader
	if rd == nil {
		return
	}
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if rd.left {
		return
	}
	rd.reads = rd.life != nil
	rd.taken = max(rd.taken, offset)
	for s, closed := range [2]bool{executor.Stdout: stdoutClosed, executor.Stderr: stderrClosed} {
		if closed && !rd.closed[s] && rd.process != nil {
			rd.process.CloseOutput(executor.Stream(s))
		}
		rd.closed[s] = rd.closed[s] || closed
	}
	if rd.life != life {
		rd.forget()
		rd.life = life
		rd.watch = context.AfterFunc(life,
			func() { rd.lost(life, func() { _ = r.table.Remove(r.owner, r.id) }) })
	}
	rd.wake()
}

// lost begins to wait for a reader whose connection has ended. Unknown removes a run that no client knows of.
func (r *reader) lost(life context.Context, unknown func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life == life && !r.left {
		then := r.leave
		if !r.reads {
			then = unknown
		}
		r.absent = time.AfterFunc(readerTime, then)
	}
}

// Leave says that the run has no reader any more: the command waits for none.
func (r *Run) Leave() {
	if r.reader != nil {
		r.reader.leave()
	}
}
