// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"math"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
)

// maxLabels bounds how many runs of the two streams are remembered for the bytes that
// only the file has: 64 KiB of memory, and none for output of one stream.
const maxLabels = 8 << 10

// labels knows which stream the bytes in the file are of. The output is divided into
// blocks of one byte until there are too many runs; then blocks double until half of
// the runs are gone. A byte has the label of the first byte of its block; in a block
// in which a gap has ended, that of a byte which stood between the two.
type labels struct {
	most  int      // runs
	block uint64   // bytes; 0 is 1
	edge  uint64   // where the gap of the file ended when runs in it were forgotten
	runs  []uint64 // offset of the first block of each run, times 2, plus its stream
}

// add notes that the bytes from..to, which come next, are of the stream. The file
// tells which bytes nobody can read any more.
func (l *labels) add(from, to uint64, s executor.Stream, file *File) {
	l.put(from, to, s)
	if len(l.runs) <= l.most {
		return
	}
	l.trim(file)
	// The first run and the one at the edge stay, whatever the blocks are.
	for len(l.runs) > max(l.most/2, 2) {
		l.coarsen(to)
	}
}

func (l *labels) put(from, to uint64, s executor.Stream) {
	n := len(l.runs)
	fixed := n == 0 || from == l.edge
	if l.block > 1 && !fixed {
		from = (from + l.block - 1) / l.block * l.block
	}
	if from < to && (fixed || l.runs[n-1]&1 != uint64(s)) {
		l.runs = append(l.runs, from<<1|uint64(s))
	}
}

// trim forgets the runs that lie in the gap of the file.
func (l *labels) trim(file *File) {
	head, tail, _ := file.Kept()
	if tail <= head {
		return
	}
	l.edge = tail
	out := make([]uint64, 0, len(l.runs)+1)
	for i, r := range l.runs {
		next := uint64(math.MaxUint64)
		if i+1 < len(l.runs) {
			next = l.runs[i+1] >> 1
		}
		if r>>1 < head || r>>1 >= tail {
			out = append(out, r)
		}
		if r>>1 < tail && next > tail {
			out = append(out, tail<<1|r&1)
		}
	}
	l.runs = out
}

// coarsen makes blocks twice as long. The output ends at the offset end.
func (l *labels) coarsen(end uint64) {
	l.block = max(l.block, 1) * 2
	old := l.runs
	l.runs = l.runs[:0] // never longer than what was read of old
	for i, r := range old {
		to := end
		if i+1 < len(old) {
			to = old[i+1] >> 1
		}
		l.put(r>>1, to, executor.Stream(r&1))
	}
}

// find returns the stream of a byte, where its run ends, and whether runs were joined
// so that the answer holds for the first byte of the block alone.
func (l *labels) find(off uint64) (s executor.Stream, end uint64, joined bool) {
	i, _ := slices.BinarySearch(l.runs, (off+1)<<1)
	end = math.MaxUint64
	if i < len(l.runs) {
		end = l.runs[i] >> 1
	}
	if i > 0 {
		s = executor.Stream(l.runs[i-1] & 1)
	}
	return s, end, l.block > 1
}
