// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"math"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
)

// maxLabels limits how many runs of the two streams are remembered for the bytes that
// only the file has: 64 KiB of memory, and none for output of one stream.
const maxLabels = 8 << 10

// labels knows the stream of the bytes in the file. The output is divided into blocks of
// one byte until there are too many runs; then blocks double until half of the runs are
// gone. A byte has the label of the first byte of its block, or of another byte before
// it in the block if a gap ends there.
type labels struct {
	most  int      // runs
	block uint64   // bytes; 0 means 1
	edge  uint64   // where the gap of the file ended when runs in it were dropped
	runs  []uint64 // offset of the first block of each run, times 2, plus its stream
}

// add records that the bytes from..to, which come next, are of the stream s. The runs of
// bytes that file has lost may be dropped.
func (l *labels) add(from, to uint64, s executor.Stream, file *File) {
	l.put(from, to, uint64(s))
	if len(l.runs) <= l.most {
		return
	}
	if head, tail, _ := file.Kept(); tail > head {
		l.trim(head, tail)
	}
	// The first run and the one at the edge stay, whatever the blocks are.
	for len(l.runs) > max(l.most/2, 2) {
		l.block = max(l.block, 1) * 2
		old := l.runs
		l.runs = l.runs[:0] // never longer than what was read of old
		for i, r := range old {
			l.put(r>>1, runEnd(old, i, to), r&1)
		}
	}
}

func (l *labels) put(from, to, s uint64) {
	n := len(l.runs)
	fixed := n == 0 || from == l.edge
	if l.block > 1 && !fixed {
		from = (from + l.block - 1) / l.block * l.block
	}
	if from < to && (fixed || l.runs[n-1]&1 != s) {
		l.runs = append(l.runs, from<<1|s)
	}
}

// trim drops the runs in the gap head..tail of the file.
func (l *labels) trim(head, tail uint64) {
	l.edge = tail
	out := make([]uint64, 0, len(l.runs)+1)
	for i, r := range l.runs {
		if r>>1 < head || r>>1 >= tail {
			out = append(out, r)
		}
		if r>>1 < tail && runEnd(l.runs, i, math.MaxUint64) > tail {
			out = append(out, tail<<1|r&1)
		}
	}
	l.runs = out
}

// runEnd returns where run number i ends; end is that of the last run.
func runEnd(runs []uint64, i int, end uint64) uint64 {
	if i+1 < len(runs) {
		return runs[i+1] >> 1
	}
	return end
}

// find returns the stream of a byte, where its run ends, and whether runs were joined,
// so that the stream is that of the first byte of the block.
func (l *labels) find(off uint64) (s executor.Stream, end uint64, joined bool) {
	i, _ := slices.BinarySearch(l.runs, (off+1)<<1)
	if i > 0 {
		s = executor.Stream(l.runs[i-1] & 1)
	}
	return s, runEnd(l.runs, i-1, math.MaxUint64), l.block > 1
}
