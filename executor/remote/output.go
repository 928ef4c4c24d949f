// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"io"
	"regexp"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
)

// A gap is output that never arrived, of size bytes, before the byte at an offset of the log.
type gap struct{ at, size uint64 }

// retained is the output of a process. Offsets count the bytes that are lost, which the log does
// not have.
type retained struct {
	*output.Log

	mu   sync.Mutex
	gaps []gap // by offset
}

// miss notes that so many bytes are lost.
func (r *retained) miss(size uint64) {
	at, _ := r.Log.Size()
	r.mu.Lock()
	defer r.mu.Unlock()
	if size > 0 {
		r.gaps = append(r.gaps, gap{at, size})
	}
}

// toLog returns the offset in the log of the first byte that arrived at or after an offset.
func (r *retained) toLog(off uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := uint64(0)
	for _, g := range r.gaps {
		if off <= g.at+lost {
			break
		}
		if off < g.at+lost+g.size {
			return g.at
		}
		lost += g.size
	}
	return off - lost
}

// fromLog returns the offset of a byte of the log, and how many bytes of the log follow up to the
// next gap; -1 when there is none.
func (r *retained) fromLog(at uint64) (off uint64, room int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	off = at
	for _, g := range r.gaps {
		if g.at > at {
			return off, int(g.at - at)
		}
		off += g.size
	}
	return off, -1
}

// Read implements [executor.Output].
func (r *retained) Read(ctx context.Context, from uint64) (executor.Chunk, error) {
	c, err := r.Log.Read(ctx, r.toLog(from))
	if err != nil {
		total, _ := r.Size()
		if errors.Is(err, io.EOF) && from < total {
			return executor.Chunk{Offset: total, Missing: total - from}, nil
		}
		return c, err
	}
	off, room := r.fromLog(c.Offset)
	if room >= 0 && room < len(c.Data) {
		c.Data = c.Data[:room]
	}
	c.Offset, c.Missing = off, off-min(from, off)
	return c, nil
}

// Size implements [executor.Output].
func (r *retained) Size() (total, missing uint64) {
	total, missing = r.Log.Size()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.gaps {
		total += g.size
		missing += g.size
	}
	return total, missing
}

// Lines implements [executor.Output]. The numbers of lines after a gap do not count lines that are
// lost.
func (r *retained) Lines(from, to int) (lines []executor.Line, more bool) {
	lines, more = r.Log.Lines(from, to)
	for i := range lines {
		l := &lines[i]
		off, room := r.fromLog(l.Offset)
		l.Offset = off
		if l.Missing == 0 && room >= 0 && uint64(room) <= l.Size {
			l.Cut = true
		}
	}
	return lines, more
}

// Search implements [executor.Output].
func (r *retained) Search(ctx context.Context, pattern *regexp.Regexp, most int) (executor.Found, error) {
	found, err := r.Log.Search(ctx, pattern, most)
	for i := range found.Matches {
		found.Matches[i].Offset, _ = r.fromLog(found.Matches[i].Offset)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.gaps {
		found.Missing += g.size
	}
	return found, err
}
