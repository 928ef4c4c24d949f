// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"math"
	"strconv"
)

// firstGrow is the size in bytes of the first allocation of a half. Most
// commands print less than that, and one that prints nothing costs nothing.
const firstGrow = 1024

// Buffer keeps the first and the last bytes of what is written to it.
//
// The zero Buffer has cap 0: it keeps nothing and counts everything. Memory
// grows with the data, up to the cap and a constant, whatever the size of the
// chunks; once it has grown, Write does not allocate. A Buffer is not safe for
// concurrent use; its owner locks. It must not be copied after the first Write.
type Buffer struct {
	head, tail       []byte
	headCap, tailCap int
	start            int // index of the oldest byte in tail; not 0 only when tail is full
	lines            int // newlines that may still be kept; negative is no limit
	omitted          uint64
}

// NewBuffer returns a Buffer that keeps capBytes bytes: the first capBytes/2 (rounded
// down) and the rest of its budget from the end. Zero and negative caps keep
// nothing and count everything.
func NewBuffer(capBytes int) *Buffer {
	b := new(Buffer)
	b.init(Limit{Bytes: capBytes})
	return b
}

// NewLimited returns a Buffer that keeps what l allows. The zero Limit keeps
// nothing and counts everything.
func NewLimited(l Limit) *Buffer {
	b := new(Buffer)
	b.init(l)
	return b
}

func (b *Buffer) init(l Limit) {
	*b = Buffer{lines: -1}
	n := max(l.Bytes, 0)
	switch {
	case l.Unlimited:
		b.headCap = math.MaxInt
	case l.headOnly():
		b.headCap = n
		if l.Lines > 0 {
			b.lines = l.Lines
		}
	default:
		b.headCap = n / 2
		b.tailCap = n - b.headCap
	}
}

// Write takes p. It always returns len(p) and nil, keeps no reference to p and
// does not block.
func (b *Buffer) Write(p []byte) (int, error) {
	b.push(p)
	return len(p), nil
}

// push takes p and reports how many bytes of it went to the head.
func (b *Buffer) push(p []byte) int {
	n := min(len(p), b.headCap-len(b.head))
	if b.lines > 0 {
		n = b.countLines(p[:n])
	}
	if n > 0 {
		b.head = grow(b.head, n, b.headCap)
		b.head = append(b.head, p[:n]...)
	}
	if n < len(p) {
		b.pushTail(p[n:])
	}
	return n
}

// countLines returns how many bytes of p come before the line budget is used
// up; the newline that uses it up is among them. Then the head closes: its cap
// becomes what it holds.
func (b *Buffer) countLines(p []byte) int {
	n := 0
	for b.lines > 0 {
		i := bytes.IndexByte(p[n:], '\n')
		if i < 0 {
			return len(p)
		}
		n += i + 1
		b.lines--
	}
	b.headCap = len(b.head) + n
	return n
}

func (b *Buffer) pushTail(p []byte) {
	if len(p) >= b.tailCap {
		b.omit(len(b.tail) + len(p) - b.tailCap)
		b.tail = grow(b.tail[:0], b.tailCap, b.tailCap)
		b.tail = append(b.tail, p[len(p)-b.tailCap:]...)
		b.start = 0
		return
	}
	if free := b.tailCap - len(b.tail); free > 0 {
		n := min(free, len(p))
		b.tail = grow(b.tail, n, b.tailCap)
		b.tail = append(b.tail, p[:n]...)
		p = p[n:]
	}
	if len(p) == 0 {
		return
	}
	// The ring is full: the newest bytes take the place of the oldest.
	b.omit(len(p))
	n := copy(b.tail[b.start:], p)
	if n < len(p) {
		b.start = copy(b.tail, p[n:])
		return
	}
	if b.start += n; b.start == b.tailCap {
		b.start = 0
	}
}

func (b *Buffer) omit(n int) { b.omitted = addSat(b.omitted, uint64(n)) }

// grow makes room for n more bytes in s, at least doubling, but never more than
// limit in all; append alone would overshoot the cap.
func grow(s []byte, n, limit int) []byte {
	need := len(s) + n
	if need <= cap(s) {
		return s
	}
	size := max(firstGrow, need)
	if c := cap(s); c <= math.MaxInt/2 {
		size = max(size, 2*c)
	}
	out := make([]byte, len(s), min(size, limit))
	copy(out, s)
	return out
}

// addSat adds without wrapping around: a count that reached the largest number
// stays there.
func addSat(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// Len returns the number of bytes that are kept.
func (b *Buffer) Len() int { return len(b.head) + len(b.tail) }

// Omitted returns the number of bytes that were written and are not kept.
func (b *Buffer) Omitted() uint64 { return b.omitted }

// Total returns the number of bytes written since the start or the last Drain:
// those kept and those omitted. It saturates at the largest uint64.
func (b *Buffer) Total() uint64 { return addSat(b.omitted, uint64(b.Len())) }

// Snapshot returns a copy of what is kept now. The Buffer goes on unchanged.
func (b *Buffer) Snapshot() Snapshot {
	return Snapshot{
		Head:    bytes.Clone(b.head),
		Tail:    b.appendTail(nil),
		Omitted: b.omitted,
		Total:   b.Total(),
	}
}

func (b *Buffer) appendTail(dst []byte) []byte {
	dst = append(dst, b.tail[b.start:]...)
	return append(dst, b.tail[:b.start]...)
}

// Bytes returns a copy of what is kept, head and tail joined without a mark.
func (b *Buffer) Bytes() []byte {
	if b.Len() == 0 {
		return nil
	}
	out := make([]byte, 0, b.Len())
	out = append(out, b.head...)
	return b.appendTail(out)
}

// Last returns a copy of the last n bytes, or of as many as are kept without a gap
// between them; nil when there are none.
func (b *Buffer) Last(n int) []byte {
	fromTail := min(max(n, 0), len(b.tail))
	fromHead := 0
	if b.omitted == 0 {
		fromHead = min(max(n, 0)-fromTail, len(b.head))
	}
	if fromHead+fromTail == 0 {
		return nil
	}
	out := make([]byte, 0, fromHead+fromTail)
	out = append(out, b.head[len(b.head)-fromHead:]...)
	// The tail is a ring whose oldest byte is at start.
	skip := len(b.tail) - fromTail
	if older := b.tail[b.start:]; skip < len(older) {
		out = append(out, older[skip:]...)
		skip = len(older)
	}
	return append(out, b.tail[skip-(len(b.tail)-b.start):b.start]...)
}

// Drain returns what is kept and empties the Buffer: the next byte is the first
// of a new head, and the counts start from zero. Cap and limits stay, except
// that a line budget is not renewed: it holds for the life of the Buffer, as
// does the byte budget of a Limit that keeps only the beginning.
func (b *Buffer) Drain() Snapshot {
	s := Snapshot{Head: b.head, Omitted: b.omitted, Total: b.Total()}
	if b.start == 0 {
		s.Tail = b.tail
	} else {
		s.Tail = b.appendTail(nil)
	}
	if b.tailCap == 0 && b.headCap != math.MaxInt {
		b.headCap -= len(b.head)
	}
	b.head, b.tail, b.start, b.omitted = nil, nil, 0, 0
	return s
}

// Append takes over what s holds: its head, then its tail, then its count of
// omitted bytes. After several Drains this gives the same as one Buffer would
// hold only when nothing was omitted in between; otherwise the gap of s lies
// somewhere in the middle and only its size is known.
func (b *Buffer) Append(s Snapshot) {
	b.push(s.Head)
	b.push(s.Tail)
	b.omitted = addSat(b.omitted, s.Omitted)
}

// Snapshot is what a Buffer held at one moment. It owns its memory. The zero
// Snapshot is that of a Buffer to which nothing was written.
type Snapshot struct {
	// Head is the true beginning of the stream; nil is empty.
	Head []byte
	// Tail is the true end of the stream as far as it is not in Head; nil is
	// empty. Without omitted bytes it follows Head directly.
	Tail []byte
	// Omitted counts the bytes that are missing between Head and Tail.
	Omitted uint64
	// Total counts the bytes of the stream: len(Head)+len(Tail)+Omitted,
	// saturating at the largest uint64.
	Total uint64
}

// Bytes returns Head and Tail joined without a mark, as a new slice; nil when
// both are empty.
func (s Snapshot) Bytes() []byte { return s.Join("") }

// Join returns Head, then marker if bytes were omitted between, then Tail. The
// result is a new slice; nil when it would be empty.
func (s Snapshot) Join(marker string) []byte {
	if s.Omitted == 0 {
		marker = ""
	}
	n := len(s.Head) + len(marker) + len(s.Tail)
	if n == 0 {
		return nil
	}
	out := make([]byte, 0, n)
	out = append(out, s.Head...)
	out = append(out, marker...)
	return append(out, s.Tail...)
}

// Render returns Head and Tail with the [Marker] between them when bytes were
// omitted: the form that agents know from their usual tools.
func (s Snapshot) Render() []byte { return s.Join(Marker(s.Omitted)) }

// Marker returns the line that stands for n omitted bytes, with a newline on
// each side of it.
func Marker(n uint64) string {
	return "\n... " + strconv.FormatUint(n, 10) + " bytes omitted ...\n"
}
