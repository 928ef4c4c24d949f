// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output keeps what a process prints: head and tail in memory, the whole of
// it in a log with a file. The log is the one ordered record of what a process prints.
//
// Every byte has an offset: its place in the order in which the bytes of both streams
// arrived. A [Log] keeps the beginning and the end of that order in memory and, where
// it was given a file, much more of it there. Flow: one pump writes; any number of
// readers, each with a cursor of its own, get the bytes from any offset on and then
// wait for more; line ranges and searches look at what is kept, wherever it is.
//
// The pump never waits for a reader: nothing is queued for one, and a reader that
// comes late or stops reading costs nothing. It reads from memory or from the file, and
// what neither has any more is counted, never left out silently. A byte is written to
// the file before it falls out of memory, so there is no buffer in between and nothing
// to wait for. The pump does wait for the system to take what goes to the file.
//
// The package does not decode characters, starts no goroutine and no timer, and never
// refuses output.
package output

import (
	"bytes"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// MaxPiece is the most that a [Piece] or a [Line] holds, in bytes.
const MaxPiece = 64 << 10

// maxLag is how far the file may be behind memory, in bytes: enough for large writes
// of the file, little enough that they find their bytes in the processor's cache.
const maxLag = 256 << 10

// Config says what a Log keeps. The zero Config keeps 1 MiB in memory and has no file.
type Config struct {
	// Retain is how many bytes of the output stay in memory, half of them from its
	// beginning; of each stream by itself as many are kept for [Log.Snapshot]. Zero and
	// negative are [DefaultBytes]. Memory grows with the output up to it.
	Retain int
	// Spill is a new file for the whole output; nil is none. The Log appends to it and
	// ends it, and never removes it: whoever made it does, when nobody reads the Log
	// any more.
	Spill *File
}

// A Log records one output. It is made by [NewLog], is safe for concurrent use, and must
// not be copied.
type Log struct {
	// w is held by the writer, also while it waits for the system; mu only for copies
	// in memory.
	w       sync.Mutex
	file    *File  // nil: none
	lag     int    // most bytes that are not in the file yet; all are in memory
	head    uint64 // offsets below it stay in memory
	flushed uint64 // offsets below it were given to the file; guarded by w

	mu      sync.RWMutex
	kept    *Capture
	size    uint64
	ended   bool
	last    time.Time
	changed chan struct{} // nil: nobody asked; closed for good when ended
	index   lineIndex
	labels  labels // of what is in the file alone
}

// NewLog returns an empty Log.
func NewLog(c Config) *Log {
	n := c.Retain
	if n <= 0 {
		n = DefaultBytes
	}
	return &Log{
		file: c.Spill,
		lag:  min(n-n/2, maxLag),
		head: uint64(n / 2),
		kept: NewCapture(Limit{Bytes: n}),

		labels: labels{most: maxLabels},
	}
}

// Write takes p as the next bytes of the stream s; any value but Stderr counts as
// Stdout. It keeps no reference to p, cannot fail and waits for no reader, but for the
// system where bytes go to the file. After Close it does nothing.
func (l *Log) Write(s executor.Stream, p []byte) {
	if s != executor.Stderr {
		s = executor.Stdout
	}
	if len(p) == 0 {
		return
	}
	now := time.Now()
	l.w.Lock()
	defer l.w.Unlock()
	if l.ended {
		return
	}
	// What is about to fall out of memory must be in the file by then.
	if l.file != nil && l.size-l.flushed+uint64(len(p)) > uint64(l.lag) {
		l.flush()
		if len(p) > l.lag {
			l.append(p)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept.Write(s, p)
	l.index.add(p)
	if end := l.size + uint64(len(p)); l.file != nil && end > l.head {
		from := max(l.size, l.head)
		l.labels.add(from, end, s, l.file)
	}
	l.size += uint64(len(p))
	l.last = now
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// flush gives the file what it does not have yet. The caller holds w, so that memory
// stays as it is.
func (l *Log) flush() {
	if l.flushed == l.size {
		return
	}
	l.file.Append(func(yield func([]byte) bool) {
		for off := l.flushed; off < l.size; {
			_, p := l.kept.At(off)
			if len(p) == 0 || !yield(p) {
				return
			}
			off += uint64(len(p))
		}
	})
	l.flushed = l.size
	l.watch(nil)
}

// append gives the file p, which is not in memory and comes next.
func (l *Log) append(p []byte) {
	l.file.Append(func(yield func([]byte) bool) { yield(p) })
	l.flushed = l.size + uint64(len(p))
	l.watch(p)
}

// watch remembers on which line the file broke off, when it did. Then what it has is
// an island in the output whose lines could not be counted later. It ends in what was
// just given to it: in memory or in p, which follows.
func (l *Log) watch(p []byte) {
	_, _, end := l.file.Kept()
	if end == 0 || end >= l.flushed || l.index.broken.off > 0 {
		return
	}
	at := point{off: end, lines: l.index.lines}
	if end > l.size {
		at.lines += uint64(bytes.Count(p[:end-l.size], newline))
	}
	for off := end; off < l.size; {
		_, p := l.kept.At(off)
		if len(p) == 0 {
			return // cannot be: the file is not further behind than memory reaches
		}
		at.lines -= uint64(bytes.Count(p, newline))
		off += uint64(len(p))
	}
	l.mu.Lock()
	l.index.broken = at
	l.mu.Unlock()
}

// Close says that the output is over: readers get [io.EOF] behind the last byte. The
// file then has everything that it can hold, and is ended. What is kept stays
// readable. Further calls do nothing.
func (l *Log) Close() {
	l.w.Lock()
	defer l.w.Unlock()
	if l.ended {
		return
	}
	if l.file != nil {
		l.flush()
		l.file.End()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	close(l.changed)
}

// Size returns how many bytes were written: the offset of the next one.
func (l *Log) Size() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.size
}

// Ended reports whether the output is over.
func (l *Log) Ended() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.ended
}

// Last returns when the last byte was written; the zero Time if there is none.
func (l *Log) Last() time.Time {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.last
}

// Changed returns a channel that is closed by the next Write of a byte or by Close;
// after Close it is closed already. Whoever waits asks for the channel first, then
// looks, then waits. A Write costs nothing for it unless somebody has asked.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// Snapshot returns a copy of what memory holds of the whole output: head and tail of
// each stream and of both together. The Log goes on unchanged.
func (l *Log) Snapshot() Captured {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.kept.Snapshot()
}
