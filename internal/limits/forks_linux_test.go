// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestForks: tasks are counted when there can be as many as allowed, and not after the
// limit was reached.
func TestForks(t *testing.T) {
	const y, n = true, false
	for _, test := range []struct {
		name   string
		limit  int
		counts []int // the answers of each count
		want   []bool
	}{
		{"below the limit nothing is counted", 5, nil, []bool{n, n, n, n}},
		{"at the limit", 3, []int{3}, []bool{n, n, y}},
		{"some have ended", 3, []int{1, 3}, []bool{n, n, n, n, y}},
		{"one below", 3, []int{2, 2, 2, 3}, []bool{n, n, n, n, n, y}},
		{"above, by those that were on their way", 3, []int{4}, []bool{n, n, y}},
		{"none beside the command", 1, []int{1}, []bool{y}},
		{"the kernel goes on denying", 2, []int{2}, []bool{n, y, n, n, n}},
		{"nothing can be counted", 2, []int{0, 0}, []bool{n, n, n, n}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, left := newForks(test.limit), test.counts
			f.start(func() int {
				if len(left) == 0 {
					t.Fatal("it was counted once more")
				}
				n := left[0]
				left = left[1:]
				return n
			})
			var got []bool
			for range test.want {
				got = append(got, f.exceeds())
			}
			if !slices.Equal(got, test.want) || len(left) > 0 || f.reached.Load() != slices.Contains(test.want, y) {
				t.Errorf("answers %v, want %v; counts left %v, reached %v", got, test.want, left, f.reached.Load())
			}
		})
	}
}

// TestForksBeforeStart: a command can make processes before it is known here that it runs.
func TestForksBeforeStart(t *testing.T) {
	for _, failed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, answer := newForks(1), make(chan bool)
			go func() { answer <- f.exceeds() }()
			select {
			case <-answer:
				t.Error("it was answered without a count")
			case <-time.After(time.Hour):
			}
			tasks := func() int { return 1 }
			if failed {
				tasks = nil
			}
			f.start(tasks)
			f.start(func() int { t.Error("the second call counts"); return 0 })
			if got := <-answer; got == failed {
				t.Errorf("failed launch %v: answer %v", failed, got)
			}
		})
	}
}

// TestTasks counts this machine's own processes, whose first one is process 1.
func TestTasks(t *testing.T) {
	if n := Tasks(os.Getpid()); n < 1 {
		t.Errorf("%d tasks, and this one is there", n)
	}
	if n := Tasks(1 << 30); n != 0 {
		t.Errorf("%d tasks of a process that there is not", n)
	}
}
