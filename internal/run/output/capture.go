// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"math"

	"github.com/sallyport-dev/sallyport/executor"
)

// A Limit says how much of a stream is kept. The zero Limit keeps nothing and counts
// everything.
type Limit struct {
	// Bytes is the number of bytes kept; zero and negative keep none.
	Bytes int
	// Lines, if positive, stops keeping with this many newlines, the last of them
	// kept, when that comes before Bytes. It implies HeadOnly.
	Lines int
	// HeadOnly keeps only the beginning; false keeps both ends.
	HeadOnly bool
	// Unlimited keeps everything and makes the other fields meaningless. Memory grows
	// with the output.
	Unlimited bool
}

func (l Limit) headOnly() bool { return l.HeadOnly || l.Lines > 0 }

// A Capture keeps the output of one command: each stream by itself, and both together
// in order of arrival.
//
// The zero Capture keeps nothing and counts everything. A Capture is not safe for
// concurrent use and must not be copied after the first Write.
type Capture struct {
	streams  [2]Buffer
	combined *Buffer // nil until both streams have output: one of them has it all
	headOnly bool
}

// NewCapture returns a Capture that keeps what l allows of each stream and of both
// together. If l keeps only beginnings, both together are all that is kept of the two
// streams, and so up to twice as long.
func NewCapture(l Limit) *Capture {
	return &Capture{streams: [2]Buffer{newBuffer(l), newBuffer(l)}, headOnly: l.Unlimited || l.headOnly()}
}

// Write takes p as the next bytes of stream. It keeps no reference to p and does not
// block. Any value but Stderr counts as Stdout.
func (c *Capture) Write(stream executor.Stream, p []byte) {
	if len(p) == 0 {
		return
	}
	kept := c.buffer(stream).push(p)
	if c.combined == nil {
		return
	}
	if c.headOnly {
		c.combined.omit(len(p) - kept)
		p = p[:kept]
	}
	c.combined.push(p)
}

// Omit counts n bytes of stream that come next and that nothing may keep.
func (c *Capture) Omit(stream executor.Stream, n int) {
	if n <= 0 {
		return
	}
	c.buffer(stream).Omit(n)
	if c.combined != nil {
		c.combined.Omit(n)
	}
}

// buffer returns the Buffer of a stream that has output.
func (c *Capture) buffer(stream executor.Stream) *Buffer {
	if stream != executor.Stderr {
		stream = executor.Stdout
	}
	if other := &c.streams[1-stream]; c.combined == nil && other.Total() > 0 {
		c.combine(other)
	}
	return &c.streams[stream]
}

// combine begins the combined output with that of the only stream so far.
func (c *Capture) combine(first *Buffer) {
	b := *first
	b.head, b.tail = bytes.Clone(first.head), bytes.Clone(first.tail)
	if c.headOnly { // the limits of the streams apply
		b.headCap, b.lines = math.MaxInt, 0
	}
	c.combined = &b
}

// Captured is what a Capture held at one moment. The snapshots may share memory.
type Captured struct {
	// Stdout and Stderr are the two streams, each kept by itself.
	Stdout, Stderr Snapshot
	// Combined is both streams in order of arrival. What it omits may still be in
	// Stdout or Stderr.
	Combined Snapshot
}

// Snapshot returns a copy of what is kept.
func (c *Capture) Snapshot() Captured {
	s := Captured{Stdout: c.streams[executor.Stdout].Snapshot(),
		Stderr: c.streams[executor.Stderr].Snapshot()}
	switch {
	case c.combined != nil:
		s.Combined = c.combined.Snapshot()
	case s.Stderr.Total > 0:
		s.Combined = s.Stderr
	default:
		s.Combined = s.Stdout
	}
	return s
}
