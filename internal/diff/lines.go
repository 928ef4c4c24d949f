// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

// maxWork bounds the steps of one comparison: some tens of milliseconds.
const maxWork = 1 << 24

// A block is lines of the old text that lines of the new one replace; one of both may be empty.
type block struct{ a, aEnd, b, bEnd int }

// A comparison finds the fewest lines that differ, by the algorithm of Myers in linear space ("An O(ND)
// difference algorithm and its variations", 1986), until its work is used up.
type comparison struct {
	a, b           []int // numbers of lines: equal ones have the same
	work           int
	oldOut         []bool // lines of a that are removed
	newIn          []bool // lines of b that are added
	forth, against []int
}

// compare returns the blocks in which two texts differ, in order.
func compare(a, b [][]byte) []block {
	numbers := make(map[string]int, len(a))
	number := func(line []byte) int {
		n, ok := numbers[string(line)]
		if !ok {
			n = len(numbers)
			numbers[string(line)] = n
		}
		return n
	}
	as, bs := make([]int, len(a)), make([]int, len(b))
	for i, line := range a {
		as[i] = number(line)
	}
	for i, line := range b {
		bs[i] = number(line)
	}
	oldOut, newIn := make([]bool, len(a)), make([]bool, len(b))
	left, aPlaces := common(as, bs, len(numbers), oldOut)
	right, bPlaces := common(bs, as, len(numbers), newIn)
	c := &comparison{a: left, b: right, work: maxWork, oldOut: make([]bool, len(left)),
		newIn: make([]bool, len(right))}
	c.compare(0, len(left), 0, len(right))
	for i, out := range c.oldOut {
		oldOut[aPlaces[i]] = out
	}
	for i, in := range c.newIn {
		newIn[bPlaces[i]] = in
	}
	return blocksOf(oldOut, newIn)
}

// common returns the lines that the other text has as well, and their places. The others are only is.
func common(lines, others []int, numbers int, only []bool) (out, places []int) {
	has := make([]bool, numbers)
	for _, n := range others {
		has[n] = true
	}
	for i, n := range lines {
		if only[i] = !has[n]; has[n] {
			out, places = append(out, n), append(places, i)
		}
	}
	return out, places
}

func blocksOf(oldOut, newIn []bool) (out []block) {
	for i, j := 0, 0; i < len(oldOut) || j < len(newIn); {
		c := block{a: i, b: j}
		for i < len(oldOut) && oldOut[i] {
			i++
		}
		for j < len(newIn) && newIn[j] {
			j++
		}
		if c.aEnd, c.bEnd = i, j; c.a < i || c.b < j {
			out = append(out, c)
			continue
		}
		i, j = i+1, j+1
	}
	return out
}

// compare compares the lines from a to aEnd with those from b to bEnd.
func (c *comparison) compare(a, aEnd, b, bEnd int) {
	for a < aEnd && b < bEnd && c.a[a] == c.b[b] {
		a, b = a+1, b+1
	}
	for a < aEnd && b < bEnd && c.a[aEnd-1] == c.b[bEnd-1] {
		aEnd, bEnd = aEnd-1, bEnd-1
	}
	if a < aEnd && b < bEnd {
		if m, ok := c.middle(c.a[a:aEnd], c.b[b:bEnd]); ok {
			c.compare(a, a+m.a, b, b+m.b)
			c.compare(a+m.aEnd, aEnd, b+m.bEnd, bEnd)
			return
		}
	}
	for ; a < aEnd; a++ {
		c.oldOut[a] = true
	}
	for ; b < bEnd; b++ {
		c.newIn[b] = true
	}
}

// middle returns the equal lines, maybe none, in the middle of a shortest way from one text to the other;
// false when there is no work left. The texts are not empty, and differ in their first and in their last
// line.
func (c *comparison) middle(a, b []int) (equal block, ok bool) {
	n, m := len(a), len(b)
	size := n + m + 3
	c.forth, c.against = zeros(c.forth, size), zeros(c.against, size)
	c.work -= size / 16
	zero := m + 1 // the index of diagonal 0
	for d := 0; d <= (n+m+1)/2; d++ {
		for _, back := range []bool{false, true} {
			way, other, reach := c.forth, c.against, d-1
			if back {
				way, other, reach = c.against, c.forth, d
			}
			for k := -(d - 2*max(0, d-m)); k <= d-2*max(0, d-n); k += 2 {
				x := way[zero+k-1] + 1
				if k == -d || k != d && way[zero+k-1] < way[zero+k+1] {
					x = way[zero+k+1]
				}
				from := x
				for x < n && x-k < m && (!back && a[x] == b[x-k] || back && a[n-1-x] == b[m-1-x+k]) {
					x++
				}
				way[zero+k] = x
				if c.work -= 1 + x - from; c.work < 0 {
					return block{}, false
				}
				facing := n - m - k
				if ((n+m)%2 == 0) != back || facing < -reach || facing > reach || x+other[zero+facing] < n {
					continue
				}
				if back {
					return block{n - x, n - from, m - (x - k), m - (from - k)}, true
				}
				return block{from, x, from - k, x - k}, true
			}
		}
	}
	return block{}, false // not reached
}

// zeros returns a slice of zeros, in the place of one that is no longer used.
func zeros(s []int, n int) []int {
	if cap(s) < n {
		return make([]int, n)
	}
	s = s[:n]
	clear(s)
	return s
}
