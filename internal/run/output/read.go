// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// Read implements [executor.Output]. It blocks for the system where bytes are in the
// file.
func (l *Log) Read(ctx context.Context, from uint64) (executor.Chunk, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return executor.Chunk{}, err
	}
	for at := from; ; {
		if ctx.Err() != nil {
			return executor.Chunk{}, context.Cause(ctx)
		}
		c, next, changed := l.chunk(at)
		c.Missing = at - from
		switch {
		case len(c.Data) > 0 || next == at && c.Missing > 0:
			return c, nil
		case next > at:
			at = next
		case changed == nil:
			return l.end(from)
		default:
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// end returns what is missing after an offset at which nothing more is retained.
func (l *Log) end(from uint64) (executor.Chunk, error) {
	if total, _ := l.Size(); from < total {
		return executor.Chunk{Offset: total, Missing: total - from}, nil
	}
	return executor.Chunk{}, io.EOF
}

// chunk returns what is retained at the offset and the offset after it. Without data,
// next is where something is retained again, or off at the end of the output; changed is
// then closed when there may be more, and nil if there will be none.
func (l *Log) chunk(off uint64) (c executor.Chunk, next uint64, changed <-chan struct{}) {
	c.Offset = off
	l.mu.Lock()
	stream, p := l.memory(off)
	c.Stream, c.Data = stream, bytes.Clone(p)
	_, tail, size := l.kept.kept()
	var runEnd uint64
	if len(p) == 0 {
		c.Stream, runEnd, c.Joined = l.labels.find(off)
	}
	if off >= size && !l.ended {
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed = l.changed
	}
	l.mu.Unlock()
	if len(c.Data) > 0 || off >= size {
		return c, c.End(), changed
	}
	buf := make([]byte, min(MaxChunk, tail-off, runEnd-off))
	n, next := l.readFile(buf, off, tail)
	c.Data = buf[:n]
	return c, next, nil
}

// memory returns bytes of one stream that are in memory, at most MaxChunk of them; none
// if the byte at the offset is not there. The caller holds mu, and the slice is valid as
// long.
func (l *Log) memory(off uint64) (executor.Stream, []byte) {
	p := l.kept.at(off, MaxChunk)
	if l.streams == nil || len(p) == 0 {
		return executor.Stdout, p
	}
	s := l.streams.at(off, len(p))
	if i := bytes.IndexByte(s, s[0]^1); i >= 0 {
		s = s[:i]
	}
	return executor.Stream(s[0]), p[:len(s)]
}

// readFile reads bytes that were not in memory a moment ago, when memory continued at
// tail. So they were given to the file before, or they are not retained.
func (l *Log) readFile(p []byte, off, tail uint64) (n int, next uint64) {
	file := l.spill()
	if file == nil {
		return 0, tail
	}
	n, next = file.ReadAt(p, off)
	if n == 0 && (next == off || next > tail) {
		next = tail
	}
	return n, next
}

// readAt reads into p what is retained from the offset on, of both streams. It returns
// the number of bytes, which may be less than is retained, and the offset after them.
// Without bytes, next is where something is retained again; at the end of the output, and
// without room in p, it is off.
func (l *Log) readAt(p []byte, off uint64) (n int, next uint64) {
	l.mu.Lock()
	_, tail, size := l.kept.kept()
	for n < len(p) {
		q := l.kept.at(off+uint64(n), len(p)-n)
		if len(q) == 0 {
			break
		}
		n += copy(p[n:], q)
	}
	l.mu.Unlock()
	if n > 0 || off >= size || len(p) == 0 {
		return n, off + uint64(n)
	}
	return l.readFile(p[:min(uint64(len(p)), tail-off)], off, tail)
}

// A span is the bytes from..to.
type span struct{ from, to uint64 }

// spans returns what is retained, in order and with a gap between any two, and the size
// of the output. A moment later the beginning of a span may be gone, and its end grown.
func (l *Log) spans() (out []span, size uint64) {
	l.mu.Lock()
	head, tail, size := l.kept.kept()
	file := l.file
	l.mu.Unlock()
	all := []span{{0, head}, {tail, size}}
	if file != nil {
		h, t, end := file.Kept()
		all = append(all, span{0, h}, span{t, end})
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range all {
		n := len(out)
		switch {
		case s.from >= s.to:
		case n > 0 && s.from <= out[n-1].to:
			out[n-1].to = max(out[n-1].to, s.to)
		default:
			out = append(out, s)
		}
	}
	return out, size
}

// Since returns the offset from which on all of the output is retained.
func (l *Log) Since() uint64 {
	spans, size := l.spans()
	if n := len(spans); n > 0 && spans[n-1].to == size {
		return spans[n-1].from
	}
	return size
}

// ReadAt reads all of p from an offset on, and reports whether it is retained.
func (l *Log) ReadAt(p []byte, off uint64) bool {
	for len(p) > 0 {
		n, next := l.readAt(p, off)
		if n == 0 {
			return false
		}
		p, off = p[n:], next
	}
	return true
}

// Size implements [executor.Output].
func (l *Log) Size() (total, missing uint64) {
	spans, total := l.spans()
	at := uint64(0)
	for _, s := range spans {
		missing += s.from - at
		at = s.to
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	over := l.beyond().bytes
	return total + over, missing + over
}
