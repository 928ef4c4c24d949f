// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"slices"
)

const (
	// firstStride is the distance in bytes of the entries of a line index at first.
	firstStride = 4 << 10
	// maxEntries bounds them: 8 KB of memory for an output of any length.
	maxEntries = 1000
)

// newline is what ends a line.
var newline = []byte{'\n'}

// A point is an offset and the number of newlines before it.
type point struct{ off, lines uint64 }

// A lineIndex counts newlines as they pass, and remembers their number at regular
// offsets, so that the lines of what is left are known by their true numbers. The zero
// lineIndex is that of an empty output.
type lineIndex struct {
	size, lines uint64
	stride      uint64   // 0 is firstStride
	counts      []uint64 // newlines before stride, 2*stride, ...
	broken      point    // one more entry: where the file broke off; offset 0 is none
}

func (x *lineIndex) step() uint64 {
	if x.stride == 0 {
		return firstStride
	}
	return x.stride
}

// add takes the next bytes of the output.
func (x *lineIndex) add(p []byte) {
	for len(p) > 0 {
		n := len(p)
		if left := uint64(len(x.counts)+1)*x.step() - x.size; left <= uint64(n) {
			n = int(left)
		}
		x.lines += uint64(bytes.Count(p[:n], newline))
		x.size += uint64(n)
		p = p[n:]
		if x.size == uint64(len(x.counts)+1)*x.step() {
			x.note()
		}
	}
}

// note adds an entry. When there are too many, every second one goes.
func (x *lineIndex) note() {
	x.counts = append(x.counts, x.lines)
	if len(x.counts) < maxEntries {
		return
	}
	for i := range maxEntries / 2 {
		x.counts[i] = x.counts[2*i+1]
	}
	x.counts = x.counts[:maxEntries/2]
	x.stride = 2 * x.step()
}

// entry returns an entry; 0 is the beginning of the output.
func (x *lineIndex) entry(i int) point {
	if i == 0 {
		return point{}
	}
	return point{uint64(i) * x.step(), x.counts[i-1]}
}

// around returns the last point that is not behind the offset, and the first that is
// not before it.
func (x *lineIndex) around(off uint64) (before, after point) {
	i := int(min(off/x.step(), uint64(len(x.counts))))
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

// start returns the last point that lies before the beginning of a line, which is
// counted from 1; the beginning of the output for the first line.
func (x *lineIndex) start(line uint64) point {
	if line <= 1 {
		return point{}
	}
	// The line begins behind newline number line-1.
	i, _ := slices.BinarySearch(x.counts, line-1)
	return x.entry(i)
}
