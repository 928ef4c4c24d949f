// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"io"
	"os"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/eventlog"
	"github.com/sallyport-dev/sallyport/internal/output"
)

// A fanout distributes the output of an attempt: to the buffers of the Result and to a
// session, to the writers of the Cmd and to the events.
type fanout struct {
	execution *execution
	kept      *output.Capture
	writers   *output.Writers
	toFile    [2]bool // streams whose writer is a file: they are not kept
	events    eventlog.Outputs

	budget   output.Budget // of both streams
	exceeded bool
	onExcess func() // called when the output exceeds the budget
}

// newFanout returns a fanout that calls onExcess when the output exceeds its limit.
func (x *execution) newFanout(stopped <-chan struct{}, onExcess func()) *fanout {
	f := &fanout{execution: x, kept: x.cmd.Retention.capture(), budget: output.NewBudget(x.cmd.Resources.Output), onExcess: onExcess}
	f.events = eventlog.Outputs{Queue: x.runner.events, Of: x.event(0, nil), Waits: x.runner.WaitForEvents, Stopped: stopped}
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
	f.events.Write(s, p)
}

// close says that the output is complete, and gives the writers a limited time for what waits.
func (f *fanout) close() {
	f.writers.Close()
	f.events.Close()
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
