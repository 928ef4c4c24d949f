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
)

// A Piece is a part of the output that belongs to one stream. The zero Piece is empty.
type Piece struct {
	Offset  uint64 // of the first byte of Data
	Missing uint64 // how many bytes before Data nobody can have any more
	Stream  executor.Stream
	// Joined says that the order of the streams is known only roughly here, because
	// they took turns very often: Data may hold bytes of both. The output is then
	// divided into blocks, of at most 32 KiB for a file of 64 MiB, and Stream is that of
	// the first byte of the block, or of one between it and Data. Only bytes that come
	// out of the file can be joined.
	Joined bool
	Data   []byte // at most [MaxPiece] bytes; they belong to the receiver
}

// A Reader gets the output in order, from an offset on. It is made by [Log.Reader].
// Between calls it holds nothing but its cursor, so it need not be closed. One
// goroutine may use it at a time.
type Reader struct {
	log *Log
	off uint64
}

// Reader returns a reader whose first byte is the one with the offset from. That may
// lie behind the end; then it waits until the output gets there.
func (l *Log) Reader(from uint64) *Reader { return &Reader{log: l, off: from} }

// Offset returns the cursor: the offset of the next byte.
func (r *Reader) Offset() uint64 { return r.off }

// Next returns the next piece, which is never empty, and waits for it if there is none
// yet. The error is [io.EOF] when the output is over, or that of ctx, which is asked
// first.
func (r *Reader) Next(ctx context.Context) (Piece, error) {
	if err := ctx.Err(); err != nil {
		return Piece{}, err
	}
	if p, ok := r.TryNext(0); ok {
		return p, nil
	}
	for {
		changed := r.log.Changed()
		ended := r.log.Ended()
		if p, ok := r.TryNext(0); ok {
			return p, nil
		}
		if ended {
			return Piece{}, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Piece{}, ctx.Err()
		}
	}
}

// TryNext returns the next piece with at most most bytes, zero and negative being
// [MaxPiece], and false if there is none now. It waits for nobody but, where the bytes
// are in the file, for the system.
func (r *Reader) TryNext(most int) (Piece, bool) {
	if most <= 0 || most > MaxPiece {
		most = MaxPiece
	}
	var missing uint64
	for {
		p, next := r.log.piece(r.off, most)
		if len(p.Data) == 0 && next == r.off {
			return Piece{Offset: r.off, Missing: missing}, missing > 0
		}
		r.off = next
		if len(p.Data) > 0 {
			p.Missing = missing
			return p, true
		}
		missing += next - p.Offset
	}
}

// A place is where a byte is to be found.
type place struct {
	size   uint64 // of the output
	data   []byte // the bytes in memory from this one on, of one stream; valid under the lock
	tail   uint64 // without data: the next offset that is in memory
	stream executor.Stream
	end    uint64 // without data: where the stream may change
	joined bool
}

// locate finds a byte. The caller holds mu.
func (l *Log) locate(off uint64) place {
	at := place{size: l.size}
	if off >= l.size {
		return at
	}
	if at.stream, at.data = l.kept.At(off); len(at.data) == 0 {
		_, at.tail, _ = l.kept.Kept()
		at.stream, at.end, at.joined = l.labels.find(off)
	}
	return at
}

// piece returns what is kept at the offset, of one stream and at most most bytes, and
// the offset behind it. Without data, next is where something is kept again, or off at
// the end of the output.
func (l *Log) piece(off uint64, most int) (p Piece, next uint64) {
	p.Offset = off
	l.mu.RLock()
	at := l.locate(off)
	if len(at.data) > 0 {
		p.Data = bytes.Clone(at.data[:min(len(at.data), most)])
	}
	l.mu.RUnlock()
	p.Stream = at.stream
	if off >= at.size || len(p.Data) > 0 {
		return p, off + uint64(len(p.Data))
	}
	p.Joined = at.joined
	most = int(min(uint64(most), at.tail-off, at.end-off))
	if l.file == nil {
		return p, at.tail
	}
	buf := make([]byte, most)
	n, next := l.fromFile(buf, off, at.tail)
	p.Data = buf[:n:n]
	return p, next
}

// fromFile reads bytes that were not in memory a moment ago; tail is where memory went
// on then. So they were given to the file before, or nobody has them.
func (l *Log) fromFile(p []byte, off, tail uint64) (n int, next uint64) {
	if l.file == nil {
		return 0, tail
	}
	n, next = l.file.ReadAt(p, off)
	if n == 0 && (next == off || next > tail) {
		next = tail
	}
	return n, next
}

// ReadAt reads into p what is kept from the offset on, in memory or in the file, of
// both streams in their order. It returns the number of bytes, which may be less than
// there is, and the offset behind them. Where nothing is kept, n is 0 and next is where
// something is kept again; at the end of the output, and without room in p, next is
// off.
func (l *Log) ReadAt(p []byte, off uint64) (n int, next uint64) {
	l.mu.RLock()
	at := l.locate(off)
	for rest := at.data; len(rest) > 0 && n < len(p); {
		n += copy(p[n:], rest)
		_, rest = l.kept.At(off + uint64(n))
	}
	l.mu.RUnlock()
	if n > 0 || off >= at.size || len(p) == 0 {
		return n, off + uint64(n)
	}
	return l.fromFile(p[:min(uint64(len(p)), at.tail-off)], off, at.tail)
}

// A span is the bytes from..to.
type span struct{ from, to uint64 }

// spans returns what is kept anywhere, in order and with a gap between any two. A
// moment later it may be less at the beginning of a span, and more at the end.
func (l *Log) spans() []span {
	l.mu.RLock()
	head, tail, size := l.kept.Kept()
	l.mu.RUnlock()
	all := [4]span{{0, head}, {}, {}, {tail, size}}
	if l.file != nil {
		h, t, end := l.file.Kept()
		all[1], all[2] = span{0, h}, span{t, end}
	}
	// The end of the file may begin within that of memory.
	slices.SortFunc(all[:], func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out []span
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
	return out
}

// Missing returns how many bytes of the output nobody can have any more.
func (l *Log) Missing() uint64 {
	spans := l.spans()
	if len(spans) == 0 {
		return 0
	}
	missing, at := uint64(0), uint64(0)
	for _, s := range spans {
		missing += s.from - at
		at = s.to
	}
	return missing
}
