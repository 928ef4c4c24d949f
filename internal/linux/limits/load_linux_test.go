// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"os"
	"testing"
	"time"
)

func TestParseTimes(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	const before, after = " S 1 2 2 0 -1 4194560 1 2 3 4 ", " 20 0 1 0 100 0 0"
	for _, c := range []struct {
		name, stat     string
		own, collected time.Duration
	}{
		{"usual", "7 (sh)" + before + "100 50 300 25" + after, 1500 * ms, 3250 * ms},
		{"a name with brackets", "7 (a) R 1 (b)" + before + "1 0 0 1" + after, 10 * ms, 10 * ms},
		{"ended", "", 0, 0},
		{"cut off", "7 (sh)" + before + "100 50", 0, 0},
		{"no numbers", "7 (sh)" + before + "x -1 99999999999999 2" + after, 0, 20 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if own, collected := parseTimes(c.stat); own != c.own || collected != c.collected {
				t.Errorf("%v, %v", own, collected)
			}
		})
	}
}

// TestLoad: memory of a process counts; one that has ended is nothing.
func TestLoad(t *testing.T) {
	t.Parallel()
	if _, memory := Load(0, []int{os.Getpid()}); memory < 1<<20 {
		t.Errorf("%d bytes", memory)
	}
	if cpu, memory := Load(0, []int{1 << 30}); cpu != 0 || memory != 0 {
		t.Errorf("%v, %d bytes of no process", cpu, memory)
	}
}
