// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// DefaultBytes is what a Buffer keeps by default, in bytes: 1 MiB, as much as the
// agents' own tools keep.
const DefaultBytes = 1 << 20

// firstGrow is the size of the first allocation of a half, in bytes. Most commands
// print less, and a command that prints nothing costs nothing.
const firstGrow = 1024

// A Buffer keeps the first and the last bytes that are written to it and counts the
// bytes between them.
//
// The zero Buffer keeps nothing and counts everything. Memory grows with the data up
// to the cap, whatever the size of the chunks; then Write does not allocate. A Buffer
// is not safe for concurrent use and must not be copied after the first Write.
type Buffer struct {
	head, tail       []byte
	headCap, tailCap int
	start            int // index of the oldest byte in tail; not 0 only when tail is full
	lines            int // newlines that head may still take; 0 means no limit
	omitted          uint64
}

// NewBuffer returns a Buffer that keeps capBytes bytes: the first half, rounded down,
// and the rest from the end. Zero and negative caps keep nothing.
func NewBuffer(capBytes int) *Buffer {
	b := newBuffer(Limit{Bytes: capBytes})
	return &b
}

func newBuffer(l Limit) Buffer {
	n := max(l.Bytes, 0)
	switch {
	case l.Unlimited:
		return Buffer{headCap: math.MaxInt}
	case l.headOnly():
		return Buffer{headCap: n, lines: max(l.Lines, 0)}
	}
	return Buffer{headCap: n / 2, tailCap: n - n/2}
}

// Write takes p. It always returns len(p) and nil, keeps no reference to p and does
// not block.
func (b *Buffer) Write(p []byte) (int, error) {
	b.push(p)
	return len(p), nil
}

// push takes p and returns how many bytes of it went to the head.
func (b *Buffer) push(p []byte) int {
	n := min(len(p), max(b.headCap-len(b.head), 0))
	if b.lines > 0 {
		n = b.countLines(p[:n])
	}
	if n > 0 {
		b.head = append(grow(b.head, n, b.headCap), p[:n]...)
	}
	if n < len(p) {
		b.pushTail(p[n:])
	}
	return n
}

// countLines returns how many bytes of p fit into the line limit. The newline that
// reaches the limit is the last byte of the head.
func (b *Buffer) countLines(p []byte) int {
	for n := 0; ; {
		i := bytes.IndexByte(p[n:], '\n')
		if i < 0 {
			return len(p)
		}
		n += i + 1
		if b.lines--; b.lines == 0 {
			b.headCap = len(b.head) + n
			return n
		}
	}
}

func (b *Buffer) pushTail(p []byte) {
	if n := len(p) - b.tailCap; n >= 0 {
		b.omit(len(b.tail) + n)
		b.tail, b.start = append(grow(b.tail[:0], b.tailCap, b.tailCap), p[n:]...), 0
		return
	}
	n := min(b.tailCap-len(b.tail), len(p))
	b.tail = append(grow(b.tail, n, b.tailCap), p[:n]...)
	// The rest takes the place of the oldest bytes.
	p = p[n:]
	b.omit(len(p))
	for len(p) > 0 {
		n := copy(b.tail[b.start:], p)
		p = p[n:]
		b.start = (b.start + n) % b.tailCap
	}
}

// Omit counts n bytes that come next and are not given to the Buffer: where nothing was omitted before,
// all that it keeps is from the beginning.
func (b *Buffer) Omit(n int) {
	if n > 0 && b.omitted == 0 && len(b.tail) > 0 {
		b.head, b.tail, b.start = slices.Concat(b.head, b.orderedTail()), nil, 0
	}
	b.omit(n)
}

func (b *Buffer) omit(n int) { b.omitted = addSat(b.omitted, uint64(n)) }

// grow makes room for n more bytes in s. It at least doubles the memory up to limit,
// which append alone would exceed.
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

// addSat adds and stops at the largest uint64.
func addSat(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// Len returns the number of bytes that are kept.
func (b *Buffer) Len() int { return len(b.head) + len(b.tail) }

// Total returns the number of bytes written since the last Drain.
func (b *Buffer) Total() uint64 { return addSat(b.omitted, uint64(b.Len())) }

// kept returns the offsets of the kept bytes: those below head, and those from tail to
// total. Without a gap head and tail are equal.
func (b *Buffer) kept() (head, tail, total uint64) {
	head = uint64(len(b.head))
	return head, addSat(head, b.omitted), b.Total()
}

// at returns up to n bytes that are kept from an offset on and lie together in memory;
// nil if that byte is not kept. The slice is valid until the next Write.
func (b *Buffer) at(off uint64, n int) []byte {
	head, tail, total := b.kept()
	var p []byte
	switch {
	case off < head:
		p = b.head[off:]
	case off >= tail && off < total:
		i := int(off - tail)
		if older := b.tail[b.start:]; i < len(older) {
			p = older[i:]
		} else {
			p = b.tail[i-len(older) : b.start]
		}
	}
	return p[:min(n, len(p))]
}

// zeros returns a Buffer to which as many zero bytes were written as bytes to b.
func (b *Buffer) zeros() *Buffer {
	z := &Buffer{headCap: b.headCap, tailCap: b.tailCap, omitted: b.omitted}
	z.push(make([]byte, b.Len()))
	return z
}

// Last returns a copy of the last n bytes, or fewer if a gap comes before them; nil
// when there are none.
func (b *Buffer) Last(n int) []byte {
	first := uint64(0)
	if b.omitted > 0 {
		_, first, _ = b.kept()
	}
	total := b.Total()
	var out []byte
	for off := total - min(total-first, uint64(max(n, 0))); off < total; {
		p := b.at(off, n)
		out = append(out, p...)
		off += uint64(len(p))
	}
	return out
}

// Snapshot returns a copy of what is kept.
func (b *Buffer) Snapshot() Snapshot {
	return Snapshot{Head: bytes.Clone(b.head), Tail: b.orderedTail(), Omitted: b.omitted, Total: b.Total()}
}

func (b *Buffer) orderedTail() []byte {
	return slices.Concat(b.tail[b.start:], b.tail[:b.start])
}

// Drain returns what is kept and empties the Buffer: the next byte is the first of a
// new head, and the counts start from zero.
func (b *Buffer) Drain() Snapshot {
	s := Snapshot{Head: b.head, Tail: b.tail, Omitted: b.omitted, Total: b.Total()}
	if b.start > 0 {
		s.Tail = b.orderedTail()
	}
	b.head, b.tail, b.start, b.omitted = nil, nil, 0, 0
	return s
}

// Append takes over what s holds: its head, its tail and its count of omitted bytes.
// After several Drains the result is that of one Buffer only if nothing was omitted;
// otherwise the gap lies somewhere in the middle and only its size is known.
func (b *Buffer) Append(s Snapshot) {
	b.push(s.Head)
	b.push(s.Tail)
	b.omitted = addSat(b.omitted, s.Omitted)
}

// A Snapshot is what a Buffer held at one moment. It owns its memory. The zero Snapshot
// is that of an empty Buffer.
type Snapshot struct {
	// Head is the beginning of the stream and Tail its end, as far as that is not in
	// Head. Without omitted bytes Tail follows Head directly.
	Head, Tail []byte
	// Omitted counts the bytes between Head and Tail, Total all bytes of the stream.
	Omitted, Total uint64
}

// Bytes returns Head and Tail as one new slice without a marker.
func (s Snapshot) Bytes() []byte { return s.join("") }

// Render returns Head and Tail with the [Marker] between them if bytes were omitted,
// the form that agents know from their usual tools.
func (s Snapshot) Render() []byte {
	if s.Omitted == 0 {
		return s.Bytes()
	}
	return s.join(Marker(s.Omitted))
}

func (s Snapshot) join(marker string) []byte {
	return slices.Concat(s.Head, []byte(marker), s.Tail)
}

// Marker returns the line that stands for n omitted bytes, with a newline on each side.
func Marker(n uint64) string {
	return "\n... " + strconv.FormatUint(n, 10) + " bytes omitted ...\n"
}
