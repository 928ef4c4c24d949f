// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// maxPieces is how many pieces of each stream become events, as in the protocol
// of Codex. What comes after them is counted, and kept like all output.
const maxPieces = 10_000

// An ear hears the output of an attempt: it keeps what the limits allow, hands
// everything to the writers of the Cmd, and pieces of it to the events.
type ear struct {
	task    *execution
	kept    *output.Capture
	relays  [2]*relay // by stream; nil where nobody listens, the same for one writer
	streams [2]deltas

	files  [2]bool // streams that go to a file, of which nothing is kept
	most   int64   // bytes of both streams that are handed on; 0 is all
	heard  int64
	passed atomic.Bool // there were more
	over   func()      // called once when there are more
}

// deltas is what one stream has handed to the events.
type deltas struct {
	whole  text.Splitter
	number uint64 // pieces handed out
	offset uint64 // where the next byte to hand out lies in the stream
	// What was not handed out since the last piece that was.
	lostEvents, lostBytes uint64
}

// newEar returns an ear that calls over when the output passes its limit.
func (x *execution) newEar(over func()) *ear {
	e := &ear{task: x, kept: x.cmd.Retention.capture(), most: x.cmd.Resources.Output, over: over}
	for i, w := range []io.Writer{x.cmd.Stdout, x.cmd.Stderr} {
		f, isFile := w.(*os.File)
		if w == nil || isFile && (f == nil || x.direct(executor.Stream(i)) != nil) {
			continue
		}
		e.files[i] = isFile
		if i == 1 && e.relays[0] != nil && same(w, x.cmd.Stdout) {
			e.relays[1] = e.relays[0] // so that it gets one call at a time, in order
			continue
		}
		e.relays[i] = newRelay(w)
		if isFile {
			e.relays[i].patience = filePatience
		}
	}
	return e
}

// filePatience is how long the command waits for a file that takes nothing, such as
// a terminal or a pipe whose reader is paused: it would have got the file itself if
// its output had no limit.
const filePatience = 30 * time.Second

// same reports whether two writers are one, as far as they can be compared. Files
// are one when the same thing is open in both.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }() // types that cannot be compared
	if a == b {
		return true
	}
	f, g := asFile(a), asFile(b)
	if f == nil || g == nil {
		return false
	}
	x, err := f.Stat()
	y, err2 := g.Stat()
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// within returns the part of p that the limit on output lets through.
func (e *ear) within(p []byte) []byte {
	if e.most == 0 {
		return p
	}
	left := max(e.most-e.heard, 0)
	e.heard += int64(len(p))
	if int64(len(p)) <= left {
		return p
	}
	if !e.passed.Swap(true) {
		e.over()
	}
	return p[:left]
}

// hear takes the next bytes of a stream. What is beyond the limit on output is
// counted, and kept like all output, and nobody else hears of it.
func (e *ear) hear(s executor.Stream, p []byte) {
	if !e.files[s] {
		e.kept.Write(s, p)
		if e.task.onOutput != nil {
			e.task.onOutput(s, p)
		}
	}
	if p = e.within(p); len(p) == 0 {
		return
	}
	if l := e.relays[s]; l != nil {
		l.push(p)
	}
	if e.task.runner.events != nil {
		e.hand(s, e.streams[s].whole.Push(p))
	}
}

// hand makes an event of a piece that ends with a whole character.
func (e *ear) hand(s executor.Stream, p []byte) {
	if len(p) == 0 {
		return
	}
	d := &e.streams[s]
	out := event.Output{
		Stream: s, Number: d.number + 1, Offset: d.offset, Data: p,
		DroppedEvents: d.lostEvents, DroppedBytes: d.lostBytes,
	}
	d.offset += uint64(len(p))
	if d.number < maxPieces {
		switch e.task.runner.events.output(e.task.id, e.task.attempts, out) {
		case taken:
			d.number++
			d.lostEvents, d.lostBytes = 0, 0
			return
		case joined:
			return
		}
	}
	d.lostEvents++
	d.lostBytes += uint64(len(p))
}

// close ends the hearing: what was held back is handed out, what was left out is
// summed up, and the writers get a bounded time to take the rest.
func (e *ear) close() {
	deadline := time.Now().Add(relayDrain)
	for i, l := range e.relays {
		if l != nil && !(i == 1 && l == e.relays[0]) {
			l.close(deadline)
		}
	}
	if e.task.runner.events == nil {
		return
	}
	for i := range e.streams {
		s, d := executor.Stream(i), &e.streams[i]
		e.hand(s, d.whole.Flush())
		if d.lostEvents > 0 {
			e.task.emit(event.Output{
				Stream: s, Number: d.number + 1, Offset: d.offset,
				DroppedEvents: d.lostEvents, DroppedBytes: d.lostBytes,
			})
		}
	}
}

// trouble returns what kept a writer from getting everything; nil if nothing did.
func (e *ear) trouble(s executor.Stream) error {
	if l := e.relays[s]; l != nil {
		return l.trouble()
	}
	return nil
}
