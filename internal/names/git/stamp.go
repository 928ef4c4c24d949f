// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"encoding/binary"
	"time"
)

// A stamp is what changes with a directory or a file. Times are in nanoseconds since
// 1970.
type stamp struct {
	modified, changed int64
	inode, device     uint64
	size              int64
}

// racy reports whether something that was read at the time now, and had the stamp
// then, can change once more without a new stamp: file systems count time in steps
// of up to two seconds (FAT).
func (s stamp) racy(now int64) bool {
	return now-s.modified < racyTime || now-s.changed < racyTime
}

const racyTime = 2e9 // nanoseconds

// nowStamp returns the time in the unit of stamps.
func nowStamp() int64 { return time.Now().UnixNano() }

// noStamp is of a directory that must be read again.
var noStamp stamp

// stampBytes is how much a stamp takes in a file at least.
const stampBytes = 5

// An encoder appends values to a text.
type encoder struct{ text []byte }

func (e *encoder) number(n uint64) { e.text = binary.AppendUvarint(e.text, n) }

func (e *encoder) string(s string) {
	e.number(uint64(len(s)))
	e.text = append(e.text, s...)
}

func (e *encoder) stamp(s stamp) {
	for _, n := range [...]uint64{uint64(s.modified), uint64(s.changed), s.inode, s.device, uint64(s.size)} {
		e.number(n)
	}
}

// A decoder reads what an encoder has written. After the first error all values are
// zero.
type decoder struct {
	text []byte
	same string // the end of it is text: strings are parts of it and not copies
	bad  bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.text)
	if size <= 0 {
		d.bad, d.text = true, nil
		return 0
	}
	d.text = d.text[size:]
	return n
}

// count reads how many things follow, each of at least so many bytes, so that a false
// number does not allocate.
func (d *decoder) count(least uint64) int {
	n := d.number()
	if n > uint64(len(d.text))/least {
		d.bad, d.text = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) string() string {
	n := d.count(1)
	at := len(d.same) - len(d.text)
	d.text = d.text[n:]
	return d.same[at : at+n]
}

func (d *decoder) stamp() stamp {
	return stamp{modified: int64(d.number()), changed: int64(d.number()), inode: d.number(),
		device: d.number(), size: int64(d.number())}
}
