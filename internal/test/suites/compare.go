// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// A difference is a test that passes outside and not inside.
type difference struct {
	test   string
	inside string // how it went inside
	listed string // the reason in the list; empty when it is not there
}

// A comparison is what two runs of one suite say.
type comparison struct {
	suite  string
	passed int // outside
	failed []difference
	stale  []string // listed, but they pass
	took   time.Duration
}

// unlisted counts the differences that are not in the list.
func (c *comparison) unlisted() int {
	n := 0
	for _, d := range c.failed {
		if d.listed == "" {
			n++
		}
	}
	return n
}

// compare compares the tests of a suite that pass outside. What fails or is skipped
// outside says nothing about a sandbox.
func compare(suite string, outside, inside outcomes, list allowed) comparison {
	c := comparison{suite: suite}
	passes, used := map[string]bool{}, map[string]bool{} // keys of the list
	for _, name := range slices.Sorted(maps.Keys(outside)) {
		if outside[name].state != passed {
			continue
		}
		c.passed++
		key, reason := list.find(suite + " " + name)
		o, ran := inside[name]
		if o.state == passed {
			passes[key] = true
			continue
		}
		used[key] = true
		switch {
		case !ran:
			c.failed = append(c.failed, difference{name, "did not run, or did not end", reason})
		case o.state == skipped:
			c.failed = append(c.failed, difference{name, "skipped: " +
				cmp.Or(o.reason, "no reason given"), reason})
		default:
			c.failed = append(c.failed,
				difference{name, cmp.Or(o.reason, "failed without a message"), reason})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(passes)) {
		if key != "" && !used[key] {
			c.stale = append(c.stale, key)
		}
	}
	return c
}

// report prints each difference with its reasons and the sums, and reports whether all
// is as listed.
func report(w io.Writer, all []comparison, missing []string) bool {
	var outside, inside, unlisted, stale int
	for _, c := range all {
		outside, inside = outside+c.passed, inside+c.passed-len(c.failed)
		unlisted, stale = unlisted+c.unlisted(), stale+len(c.stale)
		for _, d := range c.failed {
			mark := "listed:   "
			if d.listed == "" {
				mark = "UNLISTED: "
			}
			fmt.Fprintf(w, "%s%s %s: %s\n", mark, c.suite, d.test, d.inside)
			if d.listed != "" {
				fmt.Fprintf(w, "          %s\n", d.listed)
			}
		}
		for _, key := range c.stale {
			fmt.Fprintf(w, "STALE:    %s: listed, but it passes inside; remove the line\n", key)
		}
	}
	for _, m := range missing {
		fmt.Fprintf(w, "not run:  %s\n", m)
	}
	fmt.Fprintf(w, "%d tests pass outside; %d of them do not pass inside, %d unlisted; %d listed ones pass\n",
		outside, outside-inside, unlisted, stale)
	return unlisted == 0 && stale == 0
}
