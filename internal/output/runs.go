// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
)

// markEvery is the distance of the marks of runs, in bytes of run lengths: so many
// of them at most are decoded to find an offset.
const markEvery = 512

// runs is a queue of run lengths of alternating streams. Finished runs are kept
// as varints, so that a run of one byte costs one byte; the newest run, which
// may still grow, is kept apart.
type runs struct {
	total   int       // sum of all lengths
	at, end [2]uint64 // offsets in each stream at which the oldest run begins and the newest ends
	enc     []byte    // finished runs; those before off are gone
	off     int
	base    uint64          // how many bytes of run lengths stood before enc
	stream  executor.Stream // of the first finished run
	used    int             // bytes already dropped from it
	newest  executor.Stream
	newestN int    // 0 is none, and then there are no finished runs either
	marks   []mark // oldest first; the first ones may be of runs that are gone
}

// A mark says where in the streams a finished run begins, so that looking for an
// offset need not begin with the oldest.
type mark struct {
	pos    uint64 // of its length: base and the index in enc
	at     [2]uint64
	stream executor.Stream
}

// skip moves the beginning of an empty queue behind n bytes of a stream.
func (r *runs) skip(s executor.Stream, n int) {
	r.at[s] += uint64(n)
	r.end[s] += uint64(n)
}

func (r *runs) push(s executor.Stream, n int) {
	if n == 0 {
		return
	}
	r.total += n
	if r.newestN == 0 || r.newest != s {
		r.finish()
		r.newest, r.newestN = s, 0
	}
	r.newestN += n
	r.end[s] += uint64(n)
}

// finish puts the newest run, if there is one, behind the others.
func (r *runs) finish() {
	if r.newestN == 0 {
		return
	}
	if r.off == len(r.enc) {
		r.base += uint64(r.off)
		r.enc, r.off, r.used, r.stream = r.enc[:0], 0, 0, r.newest
	}
	r.compact()
	pos := r.base + uint64(len(r.enc))
	if n := len(r.marks); n == 0 && len(r.enc)-r.off >= markEvery || n > 0 && pos-r.marks[n-1].pos >= markEvery {
		m := mark{pos: pos, at: r.end, stream: r.newest}
		m.at[r.newest] -= uint64(r.newestN)
		r.marks = append(r.marks, m)
	}
	r.enc = binary.AppendUvarint(r.enc, uint64(r.newestN))
}

// compact moves the queues to the front of their memory once half of that is
// gone, before an append would have to grow it.
func (r *runs) compact() {
	if len(r.enc) == cap(r.enc) && r.off > len(r.enc)/2 {
		n := copy(r.enc, r.enc[r.off:])
		r.base += uint64(r.off)
		r.enc, r.off = r.enc[:n], 0
	}
	if n := len(r.marks); n == cap(r.marks) && n > 0 && r.marks[n/2].pos < r.base+uint64(r.off) {
		r.marks = r.marks[:copy(r.marks, r.marks[n/2:])]
	}
}

// drop removes n bytes from the oldest runs. n is at most total.
func (r *runs) drop(n int) {
	r.total -= n
	for n > 0 && r.off < len(r.enc) {
		l, k := binary.Uvarint(r.enc[r.off:])
		left := int(l) - r.used
		if n < left {
			r.used += n
			r.at[r.stream] += uint64(n)
			return
		}
		n -= left
		r.at[r.stream] += uint64(left)
		r.off += k
		r.used = 0
		r.stream ^= 1
	}
	r.newestN -= n
	r.at[r.newest] += uint64(n)
}

// find returns the stream of the byte at the offset off of both streams together,
// its offset in that stream, and how many bytes follow in its run, itself among
// them. The byte must belong to a run.
func (r *runs) find(off uint64) (s executor.Stream, at uint64, n int) {
	s, pos, used := r.stream, r.off, r.used
	start := r.at
	i, _ := slices.BinarySearchFunc(r.marks, off+1, func(m mark, off uint64) int {
		if m.at[0]+m.at[1] < off {
			return -1
		}
		return 1
	})
	if i > 0 && r.marks[i-1].pos >= r.base+uint64(r.off) {
		m := &r.marks[i-1]
		s, pos, used, start = m.stream, int(m.pos-r.base), 0, m.at
	}
	rest := off - start[0] - start[1]
	for pos < len(r.enc) {
		l, k := binary.Uvarint(r.enc[pos:])
		left := l - uint64(used)
		if rest < left {
			return s, start[s] + rest, int(left - rest)
		}
		rest -= left
		start[s] += left
		pos += k
		used = 0
		s ^= 1
	}
	s = r.newest
	return s, start[s] + rest, r.newestN - int(rest)
}

// all yields the runs from the oldest to the newest.
func (r *runs) all() iter.Seq2[executor.Stream, int] {
	return func(yield func(executor.Stream, int) bool) {
		s, used := r.stream, r.used
		for p := r.enc[r.off:]; len(p) > 0; {
			l, k := binary.Uvarint(p)
			if !yield(s, int(l)-used) {
				return
			}
			p, used, s = p[k:], 0, s^1
		}
		if r.newestN > 0 {
			yield(r.newest, r.newestN)
		}
	}
}
