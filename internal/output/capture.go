// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"iter"
	"math"

	"github.com/sallyport-dev/sallyport/executor"
)

// Capture keeps the output of one command: each stream by itself, and the two
// together in the order in which they arrived.
//
// The aggregate costs no second copy of the bytes. Whatever belongs to the
// first or the last half of both streams together also belongs to the first or
// the last half of its own stream, so it is kept there already; the Capture
// only remembers the lengths of the runs (one byte per change of stream in the
// worst case, nothing for a command that prints to one stream).
//
// The zero Capture keeps nothing and counts everything. A Capture is not safe
// for concurrent use; its owner locks. It must not be copied after the first
// Write.
type Capture struct {
	streams [2]Buffer
	headCap int  // bytes of the aggregate that its first half may cover
	tailCap int  // the same for its second half; 0 when only beginnings are kept
	first   runs // the beginning of the aggregate
	last    runs // its end
	omitted uint64
}

// NewCapture returns a Capture that keeps of each stream, and of both together,
// what l allows. When l keeps only beginnings, the aggregate is all that is kept
// of the two streams, in order of arrival, and so up to twice as long.
func NewCapture(l Limit) *Capture {
	c := new(Capture)
	for i := range c.streams {
		c.streams[i].init(l)
	}
	c.headCap, c.tailCap = c.streams[0].headCap, c.streams[0].tailCap
	if l.Unlimited || l.headOnly() {
		c.headCap = math.MaxInt
	}
	return c
}

// Write takes p as the next bytes of stream. It keeps no reference to p, does
// not block and cannot fail. Any value but Stderr counts as Stdout.
func (c *Capture) Write(stream executor.Stream, p []byte) {
	if stream != executor.Stderr {
		stream = executor.Stdout
	}
	if len(p) == 0 {
		return
	}
	b := &c.streams[stream]
	kept := b.push(p)
	if c.tailCap == 0 {
		c.first.push(stream, kept)
		c.omitted = addSat(c.omitted, uint64(len(p)-kept))
		return
	}
	n := min(len(p), c.headCap-c.first.total)
	c.first.push(stream, n)
	c.last.skip(stream, n) // the second half begins where the first ends
	c.last.push(stream, len(p)-n)
	if over := c.last.total - c.tailCap; over > 0 {
		c.last.drop(over)
		c.omitted = addSat(c.omitted, uint64(over))
	}
}

// Captured is the result of a Capture. It owns its memory.
type Captured struct {
	// Stdout and Stderr are the two streams, each kept by itself.
	Stdout, Stderr Snapshot
	// Combined is both streams in order of arrival. Its counts are those of the
	// two together; what it omits may still be in Stdout or Stderr.
	Combined Snapshot
}

// Snapshot returns a copy of what is kept now. The Capture goes on unchanged.
func (c *Capture) Snapshot() Captured {
	return Captured{
		Stdout:   c.streams[executor.Stdout].Snapshot(),
		Stderr:   c.streams[executor.Stderr].Snapshot(),
		Combined: c.Combined(),
	}
}

// Combined returns a copy of the aggregate alone.
func (c *Capture) Combined() Snapshot {
	s := Snapshot{
		Head:    c.appendRuns(&c.first),
		Tail:    c.appendRuns(&c.last),
		Omitted: c.omitted,
	}
	s.Total = addSat(s.Omitted, uint64(len(s.Head)+len(s.Tail)))
	return s
}

// Chunks returns the aggregate in order of arrival as runs of one stream each,
// first those before the gap and then those after it; Combined tells the size of
// the gap, which lies after the first headBytes bytes. The slices belong to the
// Capture and are valid until the next Write.
func (c *Capture) Chunks() (headBytes int, seq iter.Seq2[executor.Stream, []byte]) {
	return c.first.total, func(yield func(executor.Stream, []byte) bool) {
		if c.eachPiece(&c.first, yield) {
			c.eachPiece(&c.last, yield)
		}
	}
}

// Kept returns which bytes of the aggregate are kept, as offsets in it: those below
// head, and those from tail to total. Without a gap, head and tail are the same. A
// Capture that keeps only beginnings counts what it kept, in order of arrival.
func (c *Capture) Kept() (head, tail, total uint64) {
	head = uint64(c.first.total)
	tail = addSat(head, c.omitted)
	if c.headCap == math.MaxInt { // what is omitted lies in between
		return head, head, head
	}
	return head, tail, addSat(tail, uint64(c.last.total))
}

// At returns the byte at an offset of the aggregate and those that follow it there,
// as far as they are of the same stream and lie together in memory; nil if that byte
// is not kept, see [Capture.Kept]. The slice belongs to the Capture and is valid until
// the next Write. It takes the same time wherever the byte is.
func (c *Capture) At(off uint64) (executor.Stream, []byte) {
	head, tail, total := c.Kept()
	r := &c.first
	if off >= head {
		r = &c.last
	}
	if off >= total || off >= head && off < tail {
		return executor.Stdout, nil
	}
	s, at, n := r.find(off)
	return s, c.streams[s].at(at, n)
}

// Drain returns what is kept and empties the Capture. Budgets stay as
// [Buffer.Drain] says.
func (c *Capture) Drain() Captured {
	combined := c.Combined()
	c.first, c.last, c.omitted = runs{}, runs{}, 0
	return Captured{
		Stdout:   c.streams[executor.Stdout].Drain(),
		Stderr:   c.streams[executor.Stderr].Drain(),
		Combined: combined,
	}
}

// Total returns the number of bytes written to stream since the start or the
// last Drain.
func (c *Capture) Total(stream executor.Stream) uint64 {
	if stream == executor.Stderr {
		return c.streams[executor.Stderr].Total()
	}
	return c.streams[executor.Stdout].Total()
}

func (c *Capture) appendRuns(r *runs) []byte {
	if r.total == 0 {
		return nil
	}
	dst := make([]byte, 0, r.total)
	c.eachPiece(r, func(_ executor.Stream, p []byte) bool {
		dst = append(dst, p...)
		return true
	})
	return dst
}

// eachPiece yields the bytes of the runs in r until yield returns false.
func (c *Capture) eachPiece(r *runs, yield func(executor.Stream, []byte) bool) bool {
	at := r.at
	for s, n := range r.all() {
		for n > 0 {
			p := c.streams[s].at(at[s], n)
			if len(p) == 0 {
				return false // cannot be: kept runs are kept bytes
			}
			if !yield(s, p) {
				return false
			}
			n -= len(p)
			at[s] += uint64(len(p))
		}
	}
	return true
}

// at returns up to n bytes that are kept contiguously from the offset off of
// the stream on; none if that byte is not kept.
func (b *Buffer) at(off uint64, n int) []byte {
	if off < uint64(len(b.head)) {
		p := b.head[off:]
		return p[:min(n, len(p))]
	}
	tailOff := b.Total() - uint64(len(b.tail))
	if off < tailOff || off-tailOff >= uint64(len(b.tail)) {
		return nil
	}
	i := int(off - tailOff)
	p := b.tail[b.start:]
	if i >= len(p) {
		i -= len(p)
		p = b.tail[:b.start]
	}
	p = p[i:]
	return p[:min(n, len(p))]
}
