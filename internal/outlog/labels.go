// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package outlog

import (
	"math"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/headtail"
	"github.com/sallyport-dev/sallyport/internal/spill"
)

// maxLabels bounds how many runs of the two streams are remembered for the bytes that
// only the file has: 64 KiB of memory, and none for output of one stream.
const maxLabels = 8 << 10

// labels knows which stream the bytes in the file are of. The output is divided into
// blocks, and all bytes of a block have the label of its first byte. Blocks are of one
// byte until there are too many runs; then they double until half of the runs are gone.
// The first block begins where memory's beginning ends.
type labels struct {
	most  int      // runs
	block uint64   // bytes; 0 is 1
	runs  []uint64 // offset of the first block of each run, times 2, plus its stream
}

// add notes that the bytes from..to are of the stream. The file tells which bytes
// nobody can read any more.
func (l *labels) add(from, to uint64, s headtail.Stream, file *spill.File) {
	l.put(from, to, s)
	if len(l.runs) <= l.most {
		return
	}
	l.trim(file)
	for len(l.runs) > max(l.most/2, 1) {
		l.coarsen()
	}
}

func (l *labels) put(from, to uint64, s headtail.Stream) {
	n := len(l.runs)
	if l.block > 1 && n > 0 {
		from = (from + l.block - 1) / l.block * l.block
	}
	if from < to && (n == 0 || l.runs[n-1]&1 != uint64(s)) {
		l.runs = append(l.runs, from<<1|uint64(s))
	}
}

// trim forgets the runs that lie in the gap of the file.
func (l *labels) trim(file *spill.File) {
	head, tail, _ := file.Kept()
	out := l.runs[:0]
	for i, r := range l.runs {
		if i+1 < len(l.runs) && r>>1 >= head && l.runs[i+1]>>1 <= tail {
			continue
		}
		out = append(out, r)
	}
	l.runs = out
}

// coarsen makes blocks twice as long.
func (l *labels) coarsen() {
	l.block = max(l.block, 1) * 2
	old := l.runs
	l.runs = l.runs[:0] // never longer than what was read of old
	for i := 0; i < len(old); i++ {
		r, to := old[i], uint64(math.MaxUint64)
		if i+1 < len(old) {
			to = old[i+1] >> 1
		}
		l.put(r>>1, to, headtail.Stream(r&1))
	}
}

// find returns the stream of a byte, where its run ends, and whether runs were joined
// so that the answer holds for the first byte of the block alone.
func (l *labels) find(off uint64) (s headtail.Stream, end uint64, joined bool) {
	i, _ := slices.BinarySearch(l.runs, (off+1)<<1)
	end = math.MaxUint64
	if i < len(l.runs) {
		end = l.runs[i] >> 1
	}
	if i > 0 {
		s = headtail.Stream(l.runs[i-1] & 1)
	}
	return s, end, l.block > 1
}
