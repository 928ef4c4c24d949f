// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"regexp"
)

// A Retention says how much of a process's output is retained for [Process.Output].
// The zero Retention retains nothing.
type Retention struct {
	// Memory is how many bytes stay in memory, half of them from the beginning and half
	// from the end. Zero and negative mean 1 MiB if File is positive, otherwise none.
	Memory int
	// File is how many bytes a spill file holds, half of them from the beginning and
	// half from the end. Zero and negative mean no file. The executor limits all spill
	// files together and removes those of ended processes first.
	File int64
	// Open says that another process may go on with the output: it does not end with the process
	// but when its method End is called, if it has one. After is the Output of the process before;
	// nil means a new one. Executors for other machines need not support either.
	Open  bool
	After Output
}

// An Output is the retained output of a process. Every byte has an offset: its place
// in the order in which the bytes of both streams arrived. Any number of readers use an
// Output at once, each with an offset of its own. A reader takes nothing away from
// others, and the process waits for none of them.
type Output interface {
	// Read returns the first output that is retained at or after the offset from, and
	// blocks until there is some. A reader continues at [Chunk.End]. The error is io.EOF
	// when the output is complete and none is left, or the cause of ctx.
	Read(ctx context.Context, from uint64) (Chunk, error)
	// Size returns how many bytes the process has printed so far, and how many of them
	// are not retained.
	Size() (total, missing uint64)
	// LineCount returns the number of lines so far; the last one may be incomplete.
	LineCount() int
	// Lines returns the lines with the numbers from to to, both streams in order of
	// arrival, as far as they exist. A number below 1 means the first line, or the last
	// one. A gap stands for lines that are not retained, and the numbers after it are
	// true. A result holds at most 16 MiB; if more is true, the caller asks again from
	// the line after the last one.
	Lines(from, to int) (lines []Line, more bool)
	// Search returns the first match of pattern in each line that is retained, at most
	// the given number of matches; zero and negative mean 1 000. The line that pattern
	// sees has no "\n" or "\r\n"; the part of a line beside a gap counts as a line.
	// Output that arrives meanwhile is not searched. With an error of ctx, Found holds
	// the matches so far.
	Search(ctx context.Context, pattern *regexp.Regexp, most int) (Found, error)
	// Err returns why less is retained than [Spec.Retain] asks for, and nil if that is
	// not so.
	Err() error
	// Close frees what is retained outside of memory; reads then find it missing. It
	// does not end the process.
	Close() error
}

// A Chunk is a part of one stream of the output. The zero Chunk is empty.
type Chunk struct {
	// Offset is that of the first byte of Data.
	Offset uint64
	// Missing counts the bytes directly before Offset that are not retained.
	Missing uint64
	Stream  Stream
	// Joined says that Data may hold bytes of both streams, which took turns so often
	// that their order is known only in blocks, of at most 32 KiB for a file of 64 MiB.
	// Stream is then that of the first byte of the block, or of a byte between it and
	// Data. Only bytes from a spill file are joined.
	Joined bool
	// Data is at most 64 KiB and belongs to the receiver. It is empty only after
	// missing bytes at the end. A character may be cut at its edges.
	Data []byte
}

// End returns the offset after the Chunk, at which a reader continues.
func (c Chunk) End() uint64 { return c.Offset + uint64(len(c.Data)) }

// A Line is a line of the output, or a gap in it.
type Line struct {
	Number int    // from 1; of a gap, the first line of which bytes are missing
	Offset uint64 // of Data, or of the gap
	// Data is the line without its newline, or its first 64 KiB.
	Data []byte
	// Size is the length of the line without its newline, as far as it is retained.
	Size uint64
	// Cut says that a gap begins or ends in this line, so that this may be a part of it.
	Cut bool

	// Missing is the length of the gap in bytes; 0 for a line.
	Missing uint64
	// Last is the last line of which bytes may be missing in the gap; 0 for a line. If
	// the gap ends with a newline, which is not known, the next Line is all of Last.
	Last int
}

// A Match is the first match of a pattern in a line of the output.
type Match struct {
	Line   int    // from 1
	Offset uint64 // of the match
	// Data is the line without its end; of a long line, at most 4 KiB around the match.
	Data []byte
	// Start and End are the match in Data. End is the end of Data if the match is
	// longer.
	Start, End int
}

// Found is the result of a search. The zero Found is that of an empty output.
type Found struct {
	Matches  []Match // by offset
	Searched uint64  // bytes that were searched
	Missing  uint64  // bytes that are not retained
	// Split counts the lines of more than 64 KiB. They are searched in pieces of that
	// size, and a match across two pieces is not found.
	Split int
	More  bool // there are more matches than asked for
}
