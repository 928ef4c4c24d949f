// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// maxPieces is how many pieces of each stream become events, as in the protocol of
// Codex. Later pieces are counted, and retained like all output.
const maxPieces = 10_000

// Outputs makes events of the output of one attempt. Its methods are called by one goroutine.
type Outputs struct {
	Queue   *Queue          // nil drops everything
	Of      event.Event     // the run, without a body
	Waits   bool            // for a sink that is behind, in place of dropping
	Stopped <-chan struct{} // closed when the command is stopped: nothing waits for a sink then

	pieces [2]pieces // by stream
}

// pieces is what one stream has passed to the events.
type pieces struct {
	whole  text.Splitter
	number uint64 // of pieces
	offset uint64 // of the next piece in the stream
	// What was dropped since the last piece.
	droppedEvents, droppedBytes uint64
}

// Write takes the next bytes of a stream.
func (o *Outputs) Write(s executor.Stream, p []byte) {
	if o.Queue != nil {
		o.emit(s, o.pieces[s].whole.Push(p))
	}
}

// emit makes an event of a piece that ends with a whole character.
func (o *Outputs) emit(s executor.Stream, p []byte) {
	if len(p) == 0 {
		return
	}
	d := &o.pieces[s]
	piece := d.next(s)
	piece.Data = p
	d.offset += uint64(len(p))
	switch o.pass(d, piece) {
	case Taken:
		d.number++
		d.droppedEvents, d.droppedBytes = 0, 0
		return
	case Joined:
		return
	}
	d.droppedEvents++
	d.droppedBytes += uint64(len(p))
}

// pass passes an event on. It waits for a sink that is behind where that is wanted.
func (o *Outputs) pass(d *pieces, out event.Output) Fate {
	if d.number >= maxPieces && !o.Waits {
		return Dropped
	}
	for {
		what, room := o.Queue.Output(o.Of, out)
		if what != Dropped || !o.Waits {
			return what
		}
		select {
		case <-room:
		case <-o.Stopped:
			return Dropped
		}
	}
}

// next returns the next event of the stream without its data.
func (d *pieces) next(s executor.Stream) event.Output {
	return event.Output{
		Stream: s, Number: d.number + 1, Offset: d.offset, DroppedEvents: d.droppedEvents,
		DroppedBytes: d.droppedBytes,
	}
}

// Close says that the output is complete: it emits incomplete characters and the counts of what was
// dropped.
func (o *Outputs) Close() {
	if o.Queue == nil {
		return
	}
	for i := range o.pieces {
		s, d := executor.Stream(i), &o.pieces[i]
		o.emit(s, d.whole.Flush())
		if d.droppedEvents > 0 {
			e := o.Of
			e.Body = d.next(s)
			o.Queue.Emit(e)
		}
	}
}
