// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"errors"
	"math"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
)

// MaxChunk is the most that an [executor.Chunk] or an [executor.Line] holds, in bytes.
const MaxChunk = 64 << 10

// maxLag is how far the file may be behind memory, in bytes: enough for large writes,
// little enough that they find their bytes in the processor's cache.
const maxLag = 256 << 10

// A Log records one output. It is made by [NewLog], is safe for concurrent use, and must
// not be copied.
type Log struct {
	lag int // most bytes that are not in the file yet; all are in memory

	// w is held by the writer, also while it writes to the file.
	w            sync.Mutex
	flushed      uint64 // offsets below it were given to the file; guarded by w
	flushedLines uint64 // newlines in them
	budget       Budget // of what comes next; guarded by w

	// mu is held only for copies in memory.
	mu      sync.Mutex
	file    *File                 // nil without one; changes once, while w is held too
	fileErr error                 // why there is none, although one was asked for
	create  func() (*File, error) // makes it when memory does not hold the output; else nil
	kept    *Buffer
	streams *Buffer // the stream of each byte in kept; nil while all are Stdout
	ended   bool
	over    tail          // what was beyond the budget
	changed chan struct{} // closed by the next Write or End; nil if no reader waits
	index   lineIndex
	labels  labels // of the bytes that only the file has
}

// NewLog returns an empty Log that keeps memory bytes in memory, half of them from the
// beginning; zero and negative mean [DefaultBytes]. If file is not nil, it is a new file
// for the whole output; the Log owns it. fileErr says why there is no file, for
// [Log.Err].
func NewLog(memory int, file *File, fileErr error) *Log {
	if memory <= 0 {
		memory = DefaultBytes
	}
	return &Log{
		file: file, fileErr: fileErr, lag: min(memory-memory/2, maxLag),
		kept: NewBuffer(memory), index: lineIndex{stride: firstStride}, labels: labels{most: maxLabels},
	}
}

// NewTail returns an empty Log that keeps the last bytes only: so many in memory, and more in a file
// that create makes once memory does not hold the output. A nil create makes none.
func NewTail(memory int, create func() (*File, error)) *Log {
	return &Log{
		create: create, lag: memory,
		kept: &Buffer{tailCap: memory}, index: lineIndex{stride: firstStride},
		labels: labels{most: maxLabels},
	}
}

// spills reports whether there is a file, or one is made when it is needed.
func (l *Log) spills() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file != nil || l.create != nil
}

// spill returns the file; nil without one.
func (l *Log) spill() *File {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file
}

// A tail is the end of an output that is not retained.
type tail struct {
	bytes, lines uint64
	open         bool // the last line has no newline
}

// Allow bounds what is retained of the output that follows, in bytes; zero and negative mean no bound.
// What is beyond it is missing at the end of the output, and is counted once that has come.
func (l *Log) Allow(most int64) {
	l.w.Lock()
	defer l.w.Unlock()
	l.budget = NewBudget(most)
}

// within returns the part of p that the budget allows, and counts the rest. The caller holds w.
func (l *Log) within(p []byte) []byte {
	n := l.budget.Take(len(p))
	if l.over.bytes > 0 {
		n = 0 // offsets would be wrong
	}
	if n < len(p) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over.bytes += uint64(len(p) - n)
		l.over.lines += uint64(bytes.Count(p[n:], newline))
		l.over.open = p[len(p)-1] != '\n'
	}
	return p[:n]
}

// beyond returns what is missing at the end of an output that is complete. The caller holds mu.
func (l *Log) beyond() tail {
	if !l.ended {
		return tail{}
	}
	return l.over
}

// streamBytes are written to Log.streams.
var streamBytes = sync.OnceValue(func() [2][]byte {
	return [2][]byte{make([]byte, 4<<10), bytes.Repeat([]byte{byte(executor.Stderr)}, 4<<10)}
})

// Write takes p as the next bytes of the stream s; any value but Stderr counts as
// Stdout. It keeps no reference to p and does not fail. It waits for no reader, but for
// the system when bytes go to the file. After End it does nothing.
func (l *Log) Write(s executor.Stream, p []byte) {
	if s != executor.Stderr {
		s = executor.Stdout
	}
	if len(p) == 0 {
		return
	}
	l.w.Lock()
	defer l.w.Unlock()
	if l.ended {
		return
	}
	if p = l.within(p); len(p) == 0 {
		return
	}
	from := l.kept.Total()
	to := from + uint64(len(p))
	if to-l.flushed > uint64(l.lag) && l.spills() {
		l.begin()
		if l.file != nil {
			l.flush(p)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams == nil && s != executor.Stdout {
		l.streams = l.kept.zeros()
	}
	for left := len(p); l.streams != nil && left > 0; {
		n := min(left, len(streamBytes()[s]))
		l.streams.push(streamBytes()[s][:n])
		left -= n
	}
	l.kept.push(p)
	l.index.add(p)
	if head := uint64(l.kept.headCap); l.file != nil && to > head {
		l.labels.add(max(from, head), to, s, l.file)
	}
	l.wake()
}

// wake wakes the readers that wait. The caller holds mu.
func (l *Log) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// begin makes the file, unless that was done. The caller holds w.
func (l *Log) begin() {
	l.mu.Lock()
	create := l.create
	l.mu.Unlock()
	if create == nil {
		return
	}
	file, err := create()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.create == nil && err == nil { // the Log was closed meanwhile
		_ = file.Remove()
	}
	l.file, l.fileErr, l.create = file, err, nil
}

// flush gives the file all bytes in memory that it does not have yet, and p, which comes
// next, if memory could not hold p until the next flush. The caller holds w.
func (l *Log) flush(p []byte) {
	before := point{l.flushed, l.flushedLines}
	size := l.kept.Total()
	for l.flushed < size {
		q := l.kept.at(l.flushed, math.MaxInt)
		l.file.Append(q)
		l.flushed += uint64(len(q))
	}
	l.flushedLines = l.index.lines
	if len(p) > l.lag {
		l.file.Append(p)
		l.flushed += uint64(len(p))
		l.flushedLines += uint64(bytes.Count(p, newline))
	}
	// If the file has broken off, its last bytes are an island in the output, whose
	// lines can be numbered only from a point in it.
	if _, _, end := l.file.Kept(); end > 0 && end < l.flushed && l.index.broken.off == 0 {
		l.mu.Lock()
		l.index.broken = before
		l.mu.Unlock()
	}
}

// End says that the output is complete: readers get [io.EOF] after the last byte. The
// file then has all that it can hold. Further calls do nothing.
func (l *Log) End() {
	l.w.Lock()
	defer l.w.Unlock()
	if l.ended {
		return
	}
	if l.file != nil {
		l.flush(nil)
		l.file.End()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.wake()
}

// Err implements [executor.Output]. After Close it is nil.
func (l *Log) Err() error {
	l.mu.Lock()
	file, err := l.file, l.fileErr
	l.mu.Unlock()
	if file == nil {
		return err
	}
	if err := file.Err(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// Close implements [executor.Output]: it removes the file. What is in memory can still
// be read.
func (l *Log) Close() error {
	l.mu.Lock()
	file := l.file
	l.create = nil
	l.mu.Unlock()
	if file == nil {
		return nil
	}
	return file.Remove()
}
