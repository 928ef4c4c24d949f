// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import "bytes"

// maxLines bounds the bytes of one result of Lines, and lineCost is what a line costs
// beside its own.
const (
	maxLines = 16 << 20
	lineCost = 64
)

// A Line is a line of the output, or a gap in it.
type Line struct {
	Number int    // from 1; of a gap, the first line of which bytes are missing
	Offset uint64 // of Data, or of the gap
	// Data is the line without its newline, or its first [MaxPiece] bytes.
	Data []byte
	// Size is the length of the line without its newline, as far as it is kept there;
	// [Log.ReadAt] has what Data does not.
	Size uint64
	// Cut says that there is a gap directly before Data or behind its line, so that this
	// may be only a part of the line.
	Cut bool

	// Missing is the length of the gap in bytes; 0 if this is a line.
	Missing uint64
	// Last is the last line of which bytes may be missing in the gap: what follows may
	// be the rest of it, or all of it if the gap ends with a newline, which nobody can
	// tell. 0 if this is a line.
	Last int
}

// LineCount returns how many lines there are; the last one need not be complete.
func (l *Log) LineCount() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n := int(l.index.lines)
	if l.index.size > 0 && !l.endsLine() {
		n++
	}
	return n
}

// endsLine reports whether the last byte is a newline. The caller holds mu, and there
// is a byte.
func (l *Log) endsLine() bool {
	_, p := l.kept.At(l.size - 1)
	return len(p) > 0 && p[0] == '\n'
}

// Lines returns the lines from and to and those between, in order, as far as there are
// any now; the last line of the output need not be complete. Numbers below 1 mean the
// first line and the last one. Where lines are missing, there is a gap between others,
// and their numbers stay true. The result takes at most 16 MiB; if there would be more,
// more is true, and the caller asks again from behind the last line. It reads only the
// neighborhood of the lines.
func (l *Log) Lines(from, to int) (lines []Line, more bool) {
	first, last := uint64(max(from, 1)), ^uint64(0)
	if to >= 1 {
		last = uint64(to)
	}
	c := collector{first: first, last: last}
	w := l.walkFromLine(first)
	for w.line <= last && !c.full {
		seg, ok := w.next()
		if !ok {
			break
		}
		if seg.data == nil {
			c.gap(seg, w.line)
			continue
		}
		c.bytes(seg)
	}
	if !c.full {
		c.flush(false)
	}
	return c.lines, c.full
}

// A collector puts lines together.
type collector struct {
	first, last uint64
	lines       []Line
	line        Line // the one that is being read
	open        bool // there is one
	behindGap   bool
	bytesKept   int
	full        bool
}

// bytes takes the next bytes of the output.
func (c *collector) bytes(seg segment) {
	number := seg.line
	for p, off := seg.data, seg.off; len(p) > 0 && !c.full; {
		n, ends := bytes.IndexByte(p, '\n'), true
		if n < 0 {
			n, ends = len(p), false
		}
		if number >= c.first && number <= c.last {
			c.add(p[:n], off, number)
		}
		if ends {
			c.flush(false)
			number++
			c.behindGap = false
			n++
		}
		p, off = p[n:], off+uint64(n)
	}
}

// add takes bytes of one line.
func (c *collector) add(p []byte, off, number uint64) {
	if !c.open {
		c.line = Line{Number: int(number), Offset: off, Cut: c.behindGap}
		c.open = true
	}
	c.line.Size += uint64(len(p))
	if room := MaxPiece - len(c.line.Data); room > 0 {
		c.line.Data = append(c.line.Data, p[:min(room, len(p))]...)
	}
}

// gap takes what is missing. Behind it comes the line after.
func (c *collector) gap(seg segment, after uint64) {
	c.flush(true)
	if !c.full && seg.line <= c.last && after >= c.first {
		c.lines = append(c.lines, Line{Number: int(seg.line), Offset: seg.off, Missing: seg.missing, Last: int(after)})
	}
	c.behindGap = true
}

// flush ends the line that is being read, if there is one.
func (c *collector) flush(cut bool) {
	if !c.open {
		return
	}
	c.open = false
	if c.bytesKept += len(c.line.Data) + lineCost; c.bytesKept > maxLines && len(c.lines) > 0 {
		c.full = true
		return
	}
	c.line.Cut = c.line.Cut || cut
	c.lines = append(c.lines, c.line)
}

// A segment is what a walk meets next: bytes that are kept, or a gap.
type segment struct {
	off     uint64
	line    uint64 // of its first byte, from 1
	data    []byte // nil: a gap; valid until the next step
	missing uint64
}

// A walk goes through what is kept and knows on which line it is.
type walk struct {
	log            *Log
	off, line, end uint64
	buf            []byte
}

// walkFromLine begins not behind the beginning of a line, and ends where the output
// ends now.
func (l *Log) walkFromLine(line uint64) *walk {
	l.mu.RLock()
	at, size := l.index.start(line), l.size
	l.mu.RUnlock()
	w := &walk{log: l, off: at.off, line: at.lines + 1, end: size}
	if n, next := l.ReadAt(make([]byte, 1), at.off); n == 0 && next > at.off {
		w.backToGap(at.off)
	}
	return w
}

// backToGap begins where the gap begins in which the offset lies.
func (w *walk) backToGap(off uint64) {
	var begin uint64
	for _, s := range w.log.spans() {
		if s.to <= off {
			begin = s.to
		}
	}
	if line, ok := w.log.lineAt(begin); ok {
		w.off, w.line = begin, line
	}
}

// next returns the next segment; false at the end.
func (w *walk) next() (segment, bool) {
	if w.off >= w.end {
		return segment{}, false
	}
	if w.buf == nil {
		w.buf = make([]byte, min(w.end-w.off, MaxPiece))
	}
	n, next := w.log.ReadAt(w.buf[:min(uint64(len(w.buf)), w.end-w.off)], w.off)
	seg := segment{off: w.off, line: w.line}
	if n > 0 {
		seg.data = w.buf[:n]
		w.off = next
		w.line += uint64(bytes.Count(seg.data, newline))
		return seg, true
	}
	line, ok := w.log.lineAt(next)
	if !ok {
		// The writer is so fast that what comes next is being written over; the next
		// point whose line is known is not.
		w.log.mu.RLock()
		_, after := w.log.index.around(next)
		w.log.mu.RUnlock()
		next, line = after.off, after.lines+1
	}
	w.off, w.line = next, line
	seg.missing = next - seg.off
	return seg, true
}

// lineAt returns on which line the byte at an offset is, from 1: by counting from a
// point before it that is kept together with it, or up to a point behind it. One of
// both is there at the edges of every gap; false means that the edge has moved.
func (l *Log) lineAt(off uint64) (line uint64, ok bool) {
	l.mu.RLock()
	before, after := l.index.around(off)
	l.mu.RUnlock()
	if n, ok := l.count(before.off, off); ok {
		return before.lines + n + 1, true
	}
	if n, ok := l.count(off, after.off); ok {
		return after.lines - n + 1, true
	}
	return 0, false
}

// count returns the number of newlines in a part of the output; false if not all of it
// is kept.
func (l *Log) count(from, to uint64) (n uint64, ok bool) {
	if from >= to {
		return 0, from == to
	}
	buf := make([]byte, min(to-from, MaxPiece))
	for from < to {
		k, next := l.ReadAt(buf[:min(uint64(len(buf)), to-from)], from)
		if k == 0 {
			return 0, false
		}
		n += uint64(bytes.Count(buf[:k], newline))
		from = next
	}
	return n, true
}
