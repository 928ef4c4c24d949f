// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"iter"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A piece is output as a process hands it on, in order from its first byte.
type piece struct {
	offset  uint64 // of data, in both streams together
	missing uint64 // bytes directly before offset that nobody can have any more
	stream  executor.Stream
	data    []byte // valid until the next piece
}

// nextPiece returns the beginning of p that makes one delta: whole characters, at most
// size bytes of them, or the first byte alone if no character begins there. p is not
// empty.
func nextPiece(p []byte, size int) []byte {
	n := 0
	for n < len(p) {
		c, width := utf8.DecodeRune(p[n:])
		if c == utf8.RuneError && width <= 1 || n+width > size {
			break
		}
		n += width
	}
	return p[:max(n, 1)]
}

// A cutter makes deltas of the pieces of a process.
type cutter struct {
	size, most int         // bytes of a delta; deltas of a process
	merged     bool        // call everything standard output
	emit       func(Delta) // gets CallID and SessionID empty and owns Data

	number  int
	held    [2]heldBytes // by stream
	missing uint64       // bytes that no delta has, since the last one
	end     uint64       // offset of the next byte
}

// heldBytes are the beginning of a character whose rest has not come.
type heldBytes struct {
	data []byte
	at   uint64
}

// push takes the next piece.
func (c *cutter) push(p piece) {
	if p.missing > 0 {
		c.flush() // the rest of what is held is gone
		c.missing += p.missing
	}
	c.end = p.offset + uint64(len(p.data))
	data, at := p.data, p.offset
	held := &c.held[p.stream&1]
	for len(held.data) > 0 && len(data) > 0 {
		whole := append(held.data, data[0])
		switch {
		case utf8.FullRune(whole) && utf8.Valid(whole):
			c.send(p.stream, held.at, whole)
			held.data = nil
			data, at = data[1:], at+1
		case utf8.FullRune(whole): // it was none
			c.cut(p.stream, held.at, held.data)
			held.data = nil
		default:
			held.data = whole
			data, at = data[1:], at+1
		}
	}
	if n := text.Unfinished(data); n > 0 {
		start := len(data) - n
		held.data, held.at = append([]byte(nil), data[start:]...), at+uint64(start)
		data = data[:start]
	}
	c.cut(p.stream, at, data)
}

// flush hands out what was held.
func (c *cutter) flush() {
	for s := range c.held {
		h := c.held[s]
		c.held[s] = heldBytes{}
		c.cut(executor.Stream(s), h.at, h.data)
	}
}

// close hands out what was held and says what is missing at the end.
func (c *cutter) close() {
	c.flush()
	if c.missing > 0 {
		c.emit(Delta{Offset: c.end, Missing: c.missing})
	}
}

// cut makes deltas of data, whose first byte lies at the offset at.
func (c *cutter) cut(s executor.Stream, at uint64, data []byte) {
	for len(data) > 0 {
		one := nextPiece(data, c.size)
		c.send(s, at, one)
		at += uint64(len(one))
		data = data[len(one):]
	}
}

// send emits one delta, or counts it when there were enough.
func (c *cutter) send(s executor.Stream, at uint64, data []byte) {
	if c.number == c.most {
		c.missing += uint64(len(data))
		return
	}
	if c.merged {
		s = executor.Stdout
	}
	c.number++
	c.emit(Delta{Stream: s, Offset: at, Missing: c.missing, Data: append([]byte(nil), data...)})
	c.missing = 0
}

// stream hands the output of a process to the cutter and to the transcript, from its
// first byte to its last. When exited is closed, what else holds the streams of the
// process has a tenth of a second left.
func (c *cutter) stream(pieces iter.Seq2[piece, error], transcript *output.Buffer) {
	for p, err := range pieces {
		if err != nil {
			break
		}
		if p.missing > 0 {
			transcript.Append(output.Snapshot{Omitted: p.missing, Total: p.missing})
		}
		_, _ = transcript.Write(p.data) // it cannot fail
		c.push(p)
	}
	c.close()
}

// untilTrailing returns a context that ends trailingGrace after exited is closed, or
// with ctx.
func untilTrailing(ctx context.Context, exited <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-exited:
		}
		after(ctx, trailingGrace)
		cancel()
	}()
	return ctx, cancel
}
