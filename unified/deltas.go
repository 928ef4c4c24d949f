// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"bytes"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// nextPiece returns the beginning of p that makes one Delta: whole characters, at most
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

// A cutter makes Deltas of the output of a session.
type cutter struct {
	size, most int         // bytes of a Delta; Deltas of a process
	merged     bool        // call everything standard output
	emit       func(Delta) // gets CallID and SessionID empty and owns Data

	number  int
	held    [2]heldBytes // by stream
	missing uint64       // bytes that no Delta has, since the last one
	end     uint64       // offset of the next byte
}

// heldBytes are the beginning of a character whose rest has not come.
type heldBytes struct {
	data []byte
	at   uint64
}

// push takes the next part of the output.
func (c *cutter) push(d sallyport.Delta) {
	if d.Missing > 0 {
		c.flush() // the rest of held characters is gone
		c.missing += d.Missing
	}
	c.end = d.End()
	data, at := d.Data, d.Offset
	held := &c.held[d.Stream&1]
	for len(held.data) > 0 && len(data) > 0 {
		whole := append(held.data, data[0])
		switch {
		case utf8.FullRune(whole) && utf8.Valid(whole):
			c.send(d.Stream, held.at, whole)
			held.data = nil
			data, at = data[1:], at+1
		case utf8.FullRune(whole): // it was none
			c.cut(d.Stream, held.at, held.data)
			held.data = nil
		default:
			held.data = whole
			data, at = data[1:], at+1
		}
	}
	if n := len(data) - text.Unfinished(data); n < len(data) {
		held.data, held.at = bytes.Clone(data[n:]), at+uint64(n)
		data = data[:n]
	}
	c.cut(d.Stream, at, data)
}

// flush sends what is held.
func (c *cutter) flush() {
	for s := range c.held {
		h := c.held[s]
		c.held[s] = heldBytes{}
		c.cut(executor.Stream(s), h.at, h.data)
	}
}

// close sends what is held, and how much is missing at the end.
func (c *cutter) close() {
	c.flush()
	if c.missing > 0 {
		c.emit(Delta{Offset: c.end, Missing: c.missing})
	}
}

// cut makes Deltas of data, whose first byte is at the offset at.
func (c *cutter) cut(s executor.Stream, at uint64, data []byte) {
	for len(data) > 0 {
		one := nextPiece(data, c.size)
		c.send(s, at, one)
		at += uint64(len(one))
		data = data[len(one):]
	}
}

// send emits one Delta, or counts its bytes when there were enough.
func (c *cutter) send(s executor.Stream, at uint64, data []byte) {
	if c.number == c.most {
		c.missing += uint64(len(data))
		return
	}
	if c.merged {
		s = executor.Stdout
	}
	c.number++
	c.emit(Delta{Stream: s, Offset: at, Missing: c.missing, Data: bytes.Clone(data)})
	c.missing = 0
}
