// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"io"
	"os"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/eventlog"
	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// maxPieces is how many pieces of each stream become events, as in the protocol of
// Codex. Later pieces are counted, and retained like all output.
const maxPieces = 10_000

// A fanout distributes the output of an attempt: to the buffers of the Result and to a
// session, to the writers of the Cmd and to the events.
type fanout struct {
	execution *execution
	kept      *output.Capture
	writers   *output.Writers
	toFile    [2]bool // streams whose writer is a file: they are not kept
	pieces    [2]pieces

	stopped <-chan struct{} // closed when the command is stopped: nothing waits for a sink then

	budget   output.Budget // of both streams
	exceeded bool
	onExcess func() // called when the output exceeds the budget
}

// pieces is what one stream has passed to the events.
type pieces struct {
	whole  text.Splitter
	number uint64 // of pieces
	offset uint64 // of the next piece in the stream
	// What was dropped since the last piece.
	droppedEvents, droppedBytes uint64
}

// newFanout returns a fanout that calls onExcess when the output exceeds its limit.
func (x *execution) newFanout(stopped <-chan struct{}, onExcess func()) *fanout {
	f := &fanout{execution: x, stopped: stopped, kept: x.cmd.Retention.capture(), budget: output.NewBudget(x.cmd.Resources.Output), onExcess: onExcess}
	var writers [2]io.Writer
	for i, w := range []io.Writer{x.cmd.Stdout, x.cmd.Stderr} {
		file, isFile := w.(*os.File)
		if isFile && (file == nil || x.direct(executor.Stream(i)) != nil) {
			continue // there is none, or the command has it itself
		}
		writers[i], f.toFile[i] = w, isFile
	}
	f.writers = output.NewWriters(writers[0], writers[1])
	return f
}

// write takes the next bytes of a stream. Bytes beyond the budget are counted, and nothing gets them.
func (f *fanout) write(s executor.Stream, p []byte) {
	n := f.budget.Take(len(p))
	over := len(p) - n
	p = p[:n]
	if over > 0 && !f.exceeded {
		f.exceeded = true
		f.onExcess()
	}
	if !f.toFile[s] {
		f.kept.Write(s, p)
		f.kept.Omit(s, over)
		if f.execution.onOutput != nil {
			f.execution.onOutput(p, over)
		}
	}
	f.writers.Write(s, p)
	if f.execution.runner.events != nil {
		f.emit(s, f.pieces[s].whole.Push(p))
	}
}

// emit makes an event of a piece that ends with a whole character.
func (f *fanout) emit(s executor.Stream, p []byte) {
	if len(p) == 0 {
		return
	}
	d := &f.pieces[s]
	out := d.next(s)
	out.Data = p
	d.offset += uint64(len(p))
	switch f.pass(d, out) {
	case eventlog.Taken:
		d.number++
		d.droppedEvents, d.droppedBytes = 0, 0
		return
	case eventlog.Joined:
		return
	}
	d.droppedEvents++
	d.droppedBytes += uint64(len(p))
}

// pass passes an event on. It waits for a sink that is behind where that is wanted.
func (f *fanout) pass(d *pieces, out event.Output) eventlog.Fate {
	r := f.execution.runner
	if d.number >= maxPieces && !r.WaitForEvents {
		return eventlog.Dropped
	}
	for {
		what, room := r.events.Output(f.execution.id, f.execution.attempts, out)
		if what != eventlog.Dropped || !r.WaitForEvents {
			return what
		}
		select {
		case <-room:
		case <-f.stopped:
			return eventlog.Dropped
		}
	}
}

// next returns the next event of the stream without its data.
func (d *pieces) next(s executor.Stream) event.Output {
	return event.Output{
		Stream: s, Number: d.number + 1, Offset: d.offset, DroppedEvents: d.droppedEvents, DroppedBytes: d.droppedBytes,
	}
}

// close says that the output is complete: it emits incomplete characters and the counts
// of what was dropped, and gives the writers a limited time for what waits.
func (f *fanout) close() {
	f.writers.Close()
	if f.execution.runner.events == nil {
		return
	}
	for i := range f.pieces {
		s, d := executor.Stream(i), &f.pieces[i]
		f.emit(s, d.whole.Flush())
		if d.droppedEvents > 0 {
			f.execution.emit(d.next(s))
		}
	}
}

// inputErr returns a *ReaderError if the command did not get all of its input.
func (a *attempt) inputErr() error {
	if err := a.input.Err(); err != nil {
		return &ReaderError{err}
	}
	return nil
}

// writerErr returns a *WriterError if the writer of a stream did not get everything.
func (f *fanout) writerErr(s executor.Stream) error {
	missed, err := f.writers.Missed(s)
	if missed == 0 && err == nil {
		return nil
	}
	return &WriterError{Missed: missed, Err: err}
}
