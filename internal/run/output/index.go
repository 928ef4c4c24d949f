// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"slices"
)

const (
	// firstStride is the first distance of the entries of a line index, in bytes.
	firstStride = 4 << 10
	// maxEntries limits them: 8 KB of memory for an output of any length.
	maxEntries = 1000
)

var newline = []byte{'\n'}

// A point is an offset and the number of newlines before it.
type point struct{ off, lines uint64 }

// A lineIndex counts newlines as they pass and remembers their number at regular
// offsets, so that retained lines have their true numbers.
type lineIndex struct {
	size, lines uint64
	stride      uint64
	counts      []uint64 // newlines before stride, 2*stride, ...
	broken      point    // one more entry, near where the file broke off; offset 0 means none
}

// add takes the next bytes of the output.
func (x *lineIndex) add(p []byte) {
	for len(p) > 0 {
		next := uint64(len(x.counts)+1) * x.stride
		n := min(uint64(len(p)), next-x.size)
		x.lines += uint64(bytes.Count(p[:n], newline))
		x.size += n
		p = p[n:]
		if x.size < next {
			continue
		}
		if x.counts = append(x.counts, x.lines); len(x.counts) < maxEntries {
			continue
		}
		for i := range maxEntries / 2 { // every second entry goes
			x.counts[i] = x.counts[2*i+1]
		}
		x.counts = x.counts[:maxEntries/2]
		x.stride *= 2
	}
}

// entry returns an entry; 0 is the beginning of the output.
func (x *lineIndex) entry(i int) point {
	if i == 0 {
		return point{}
	}
	return point{uint64(i) * x.stride, x.counts[i-1]}
}

// around returns the last point that is not after the offset, and the first that is not
// before it.
func (x *lineIndex) around(off uint64) (before, after point) {
	i := int(min(off/x.stride, uint64(len(x.counts))))
	before = x.entry(i)
	switch {
	case before.off == off:
		after = before
	case i < len(x.counts):
		after = x.entry(i + 1)
	default:
		after = point{x.size, x.lines}
	}
	if b := x.broken; b.off > 0 {
		if b.off <= off && b.off > before.off {
			before = b
		}
		if b.off >= off && b.off < after.off {
			after = b
		}
	}
	return before, after
}

// start returns the last entry before the beginning of a line, counted from 1; the
// beginning of the output for the first line.
func (x *lineIndex) start(line uint64) point {
	if line <= 1 {
		return point{}
	}
	// The line begins after newline number line-1.
	i, _ := slices.BinarySearch(x.counts, line-1)
	return x.entry(i)
}
