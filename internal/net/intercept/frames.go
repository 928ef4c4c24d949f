// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import "encoding/binary"

// frames knows where the frames of a websocket end (RFC 6455, 5.2): nothing that a value can begin with
// is kept back there, because a value does not go on behind the head of the next one.
type frames struct {
	head []byte // of a frame that has begun, as far as it came
	left uint64 // of the payload, in bytes
}

// pass takes bytes that came.
func (f *frames) pass(p []byte) {
	for len(p) > 0 {
		n := min(f.left, uint64(len(p)))
		f.left, p = f.left-n, p[n:]
		if len(p) == 0 {
			return
		}
		f.head, p = append(f.head, p[0]), p[1:]
		if left, ok := payload(f.head); ok {
			f.head, f.left = f.head[:0], left
		}
	}
}

// payload returns the length of the payload behind the head of a frame, if that is whole.
func payload(head []byte) (n uint64, ok bool) {
	if len(head) < 2 {
		return 0, false
	}
	const masked, twoBytes, eightBytes = 0x80, 126, 127
	n, size := uint64(head[1]&^masked), 2
	switch n {
	case twoBytes:
		size += 2
	case eightBytes:
		size += 8
	}
	if head[1]&masked != 0 {
		size += 4 // its key
	}
	switch {
	case len(head) < size:
		return 0, false
	case n == twoBytes:
		n = uint64(binary.BigEndian.Uint16(head[2:]))
	case n == eightBytes:
		n = binary.BigEndian.Uint64(head[2:])
	}
	return n, true
}

// atEnd reports whether the last byte ends a frame. The nil frames have no end.
func (f *frames) atEnd() bool { return f != nil && f.left == 0 && len(f.head) == 0 }
