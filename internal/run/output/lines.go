// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"

	"github.com/sallyport-dev/sallyport/executor"
)

// maxLines limits the bytes of one result of Lines; lineCost is what a line costs beside
// its own.
const (
	maxLines = 16 << 20
	lineCost = 64
)

// LineCount implements [executor.Output].
func (l *Log) LineCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := l.beyond()
	n, open := int(l.index.lines+over.lines), over.open
	if over.bytes == 0 && l.index.size > 0 {
		open = !bytes.Equal(l.kept.at(l.index.size-1, 1), newline)
	}
	if open {
		n++
	}
	return n
}

// Lines implements [executor.Output]. It reads only the neighborhood of the lines.
func (l *Log) Lines(from, to int) (lines []executor.Line, more bool) {
	c := collector{first: uint64(max(from, 1)), last: ^uint64(0)}
	if to >= 1 {
		c.last = uint64(to)
	}
	w := l.walkFromLine(c.first)
	for w.line <= c.last && !c.full {
		seg, ok := w.next()
		if !ok {
			break
		}
		if seg.data == nil {
			c.gap(seg, w.line)
		} else {
			c.bytes(seg)
		}
	}
	l.mu.Lock()
	over := l.beyond()
	l.mu.Unlock()
	if over.bytes > 0 && !c.full {
		c.gap(segment{off: w.end, line: w.line, missing: over.bytes}, w.line+over.lines)
	}
	c.flush(false)
	return c.lines, c.full
}

// A collector puts lines together.
type collector struct {
	first, last uint64
	lines       []executor.Line
	line        executor.Line // the one that is being read
	open        bool          // there is one
	afterGap    bool
	size        int
	full        bool
}

// bytes takes the next bytes of the output.
func (c *collector) bytes(seg segment) {
	number := seg.line
	for p, off := seg.data, seg.off; len(p) > 0 && !c.full; number++ {
		part, rest, ends := bytes.Cut(p, newline)
		if number >= c.first && number <= c.last {
			c.add(part, off, number)
		}
		if ends {
			c.flush(false)
			c.afterGap = false
		}
		off += uint64(len(p) - len(rest))
		p = rest
	}
}

// add takes bytes of one line.
func (c *collector) add(p []byte, off, number uint64) {
	if !c.open {
		c.line = executor.Line{Number: int(number), Offset: off, Cut: c.afterGap}
		c.open = true
	}
	c.line.Size += uint64(len(p))
	if room := MaxChunk - len(c.line.Data); room > 0 {
		c.line.Data = append(c.line.Data, p[:min(room, len(p))]...)
	}
}

// gap takes a gap. The output continues on the line after.
func (c *collector) gap(seg segment, after uint64) {
	c.flush(true)
	if !c.full && seg.line <= c.last && after >= c.first {
		c.lines = append(c.lines, executor.Line{
			Number: int(seg.line), Offset: seg.off, Missing: seg.missing, Last: int(after),
		})
	}
	c.afterGap = true
}

// flush ends the line that is being read, if there is one.
func (c *collector) flush(cut bool) {
	if !c.open {
		return
	}
	c.open = false
	if c.size += len(c.line.Data) + lineCost; c.size > maxLines && len(c.lines) > 0 {
		c.full = true
		return
	}
	c.line.Cut = c.line.Cut || cut
	c.lines = append(c.lines, c.line)
}

// A segment is the next step of a walk: retained bytes, or a gap.
type segment struct {
	off     uint64
	line    uint64 // of its first byte, from 1
	data    []byte // nil for a gap; valid until the next step
	missing uint64
}

// A walk goes through the retained output and knows on which line it is.
type walk struct {
	log            *Log
	off, line, end uint64
	buf            []byte
}

// walkFromLine begins at or before the beginning of a line, and ends where the output
// ends now.
func (l *Log) walkFromLine(line uint64) *walk {
	l.mu.Lock()
	at, size := l.index.start(line), l.index.size
	l.mu.Unlock()
	w := &walk{log: l, off: at.off, line: at.lines + 1, end: size,
		buf: make([]byte, min(size-at.off, MaxChunk))}
	if n, next := l.readAt(make([]byte, 1), at.off); n > 0 || next == at.off {
		return w
	}
	// The entry lies in a gap: begin where that begins.
	var begin uint64
	spans, _ := l.spans()
	for _, s := range spans {
		if s.to <= at.off {
			begin = s.to
		}
	}
	if line, ok := l.lineAt(begin); ok {
		w.off, w.line = begin, line
	}
	return w
}

// next returns the next segment; false at the end.
func (w *walk) next() (segment, bool) {
	if w.off >= w.end {
		return segment{}, false
	}
	n, next := w.log.readAt(w.buf[:min(uint64(len(w.buf)), w.end-w.off)], w.off)
	seg := segment{off: w.off, line: w.line}
	if n > 0 {
		seg.data = w.buf[:n]
		w.off = next
		w.line += uint64(bytes.Count(seg.data, newline))
		return seg, true
	}
	line, ok := w.log.lineAt(next)
	if !ok {
		// The writer is overwriting what comes next; the next point whose line is known
		// is not in reach of it.
		w.log.mu.Lock()
		_, after := w.log.index.around(next)
		w.log.mu.Unlock()
		next, line = after.off, after.lines+1
	}
	w.off, w.line = next, line
	seg.missing = next - seg.off
	return seg, true
}

// lineAt returns the line of the byte at an offset, from 1. It counts from a point before
// it or up to a point after it. At the edges of every gap one of the two is retained
// together with the byte; false means that the edge has moved.
func (l *Log) lineAt(off uint64) (line uint64, ok bool) {
	l.mu.Lock()
	before, after := l.index.around(off)
	l.mu.Unlock()
	if n, ok := l.count(before.off, off); ok {
		return before.lines + n + 1, true
	}
	if n, ok := l.count(off, after.off); ok {
		return after.lines - n + 1, true
	}
	return 0, false
}

// count returns the number of newlines in a part of the output; false if not all of it is
// retained.
func (l *Log) count(from, to uint64) (n uint64, ok bool) {
	buf := make([]byte, min(max(to, from)-from, MaxChunk))
	for from < to {
		k, next := l.readAt(buf[:min(uint64(len(buf)), to-from)], from)
		if k == 0 {
			return 0, false
		}
		n += uint64(bytes.Count(buf[:k], newline))
		from = next
	}
	return n, from == to
}
