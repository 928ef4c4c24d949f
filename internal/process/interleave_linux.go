// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
)

// A round is what one look at both pipes found, while writers go on: the bytes of
// now were there when the look began, and every one of them has its turn in the
// pump's order. Turns that came during the look have their bytes in later, which
// includes now. Bytes that came after the look are left for the next round.
type round struct {
	now, later [2]int
}

// survey begins a round.
func (p *epollPump) survey() (r round) {
	r.now = p.sizes()
	// The kernel writes the note a moment after the bytes. A writer that was
	// interrupted in between is not waited for long.
	for range 8 {
		p.order = p.turns.take(p.order)
		if p.noted(r.now) {
			break
		}
	}
	r.later = p.sizes()
	return r
}

// noted reports whether every stream that has bytes also has a turn.
func (p *epollPump) noted(size [2]int) bool {
	for i, n := range size {
		if n > 0 && !slices.Contains(p.order, executor.Stream(i)) {
			return false
		}
	}
	return true
}

// sizes returns how many bytes wait in each pipe.
func (p *epollPump) sizes() (size [2]int) {
	for i, fd := range p.fds {
		if fd < 0 {
			continue
		}
		if n, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil {
			size[i] = n
		}
	}
	return size
}

// interleave reads the bytes of a round and hands them on in the order of their
// turns: a line for each turn, and all that there is for a stream's last one.
func (p *epollPump) interleave(r round) {
	p.borrow()
	const half = bufferSize / 2
	memory := [2][]byte{p.buf[:half], p.buf[half:]}
	var left [2][]byte // read and not handed on
	var used [2]int    // read in this round
	fill := func(s executor.Stream, upTo int) {
		n := p.readInto(int(s), memory[s][:min(upTo-used[s], half)])
		left[s] = memory[s][:n]
		used[s] += n
	}
	fill(executor.Stdout, r.now[0])
	fill(executor.Stderr, r.now[1])
	last := [2]int{-1, -1} // the index of each stream's last turn
	for i, s := range p.order {
		last[s] = i
	}
	for i, s := range p.order {
		if len(left[s]) == 0 {
			fill(s, r.later[s]) // empty for a turn whose bytes came with an earlier one
		}
		n := len(left[s])
		if i < last[s] {
			n = bytes.IndexByte(left[s], '\n') + 1
		}
		p.say(int(s), left[s][:n])
		left[s] = left[s][n:]
	}
	// Bytes without a turn, if any.
	p.say(0, left[0])
	p.say(1, left[1])

	// What is known to be in the pipes now comes before all turns to come.
	p.order = p.order[:0]
	first := executor.Stdout
	if last[1] < last[0] {
		first = executor.Stderr
	}
	for _, s := range []executor.Stream{first, 1 - first} {
		if r.later[s] > used[s] {
			p.order = append(p.order, s)
		}
	}
}
