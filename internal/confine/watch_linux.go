// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// A watch looks at a tree again and again, for limits that nothing else holds here.
// The next look comes when the tree could have reached its limit, if it went as
// fast as machines go; looking takes at most a tenth of one processor, except where a
// look of memory or processes takes longer than a few milliseconds. What a tree does
// between two looks is how far it can go beyond a limit.
type watch struct {
	memory int64      // bytes, or 0
	pids   int        // tasks, or 0
	disk   *diskWatch // or nil

	root int // the reaper
	end  func(limit string)
	over chan struct{}
	wg   sync.WaitGroup
	seen seen
}

// seen is what a watch can tell afterwards.
type seen struct {
	memory int64 // the most that the tree had when it was looked at closely; 0 for never
	disk   bool  // the limit on disk was met
}

// How fast a tree can go, and how often it is looked at.
const (
	memoryRate = 4 << 30                // bytes a second that two processors can touch
	taskTime   = 20 * time.Microsecond  // for one more process, with as many that make them
	diskRate   = 4 << 30                // bytes a second that are written to a file system in memory
	soonest    = 4 * time.Millisecond   // between two looks
	latest     = 250 * time.Millisecond // while there is a limit, however far it is
	share      = 10                     // a look is followed by so many times its own length without one
	longest    = 40 * time.Millisecond  // the most of that where a look waited for a busy machine rather than worked
)

// begin begins to watch the tree below the reaper. end is called from another
// goroutine, with the limit that was passed, at most once.
func (w *watch) begin(root int, end func(limit string)) {
	w.root, w.end, w.over = root, end, make(chan struct{})
	w.wg.Go(w.run)
}

// finish ends the watch, looks once more at what outlives the tree, and tells.
func (w *watch) finish() seen {
	close(w.over)
	w.wg.Wait()
	if w.disk != nil && !w.seen.disk {
		w.seen.disk = w.disk.passed(nil)
	}
	return w.seen
}

// A lookout is one thing that is watched: it returns whether the limit was passed, and
// when the next look must come.
type lookout struct {
	limit string
	at    func() (passed bool, next time.Duration)
	pause time.Duration // the most that follows a look for the look's own sake
	due   time.Time
}

func (w *watch) run() {
	var looks []lookout
	if w.memory > 0 {
		looks = append(looks, lookout{limit: executor.LimitMemory, at: w.lookMemory, pause: longest})
	}
	if w.pids > 0 {
		looks = append(looks, lookout{limit: executor.LimitPIDs, at: w.lookPIDs, pause: longest})
	}
	if w.disk != nil {
		looks = append(looks, lookout{limit: executor.LimitDisk, at: w.lookDisk, pause: time.Minute})
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.over:
			return
		case <-timer.C:
		}
		next := latest
		for i := range looks {
			l := &looks[i]
			begin := time.Now()
			if !l.due.After(begin) {
				passed, in := l.at()
				if passed {
					w.end(l.limit)
					return
				}
				in = max(min(in, latest), soonest, min(share*time.Since(begin), l.pause))
				l.due = time.Now().Add(in)
			}
			next = min(next, time.Until(l.due))
		}
		timer.Reset(max(next, 0))
	}
}

// lookMemory adds up what is resident. Pages that processes share count several
// times in that, so nothing is ended for it: the sum says when to ask for the exact
// one, which takes the kernel longer.
func (w *watch) lookMemory() (passed bool, next time.Duration) {
	var sum int64
	pids := descendants(w.root)
	for _, pid := range pids {
		sum += resident(pid)
	}
	if sum > w.memory {
		var exact int64
		for _, pid := range pids {
			exact += proportional(pid)
		}
		w.seen.memory = max(w.seen.memory, exact)
		if exact > w.memory {
			return true, 0
		}
		sum = exact
	}
	return false, until(w.memory-sum, memoryRate)
}

// until is how long something takes at most to grow by n.
func until(n int64, perSecond float64) time.Duration {
	return time.Duration(float64(max(n, 0)) / perSecond * float64(time.Second))
}

// resident is the resident memory of a process in bytes; 0 when it has ended.
func resident(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	return parseStatm(string(b)) * int64(os.Getpagesize())
}

// parseStatm reads the resident pages of /proc/PID/statm, its second number
// (proc_pid_statm(5)).
func parseStatm(text string) int64 {
	f := strings.Fields(text)
	if len(f) < 2 {
		return 0
	}
	n, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 0
	}
	return n
}

// proportional is the memory of a process that no file gives back, in bytes, with
// its part of what it shares. Where that is not told, it is what is its own.
func proportional(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if n, ok := parseRollup(b); err == nil && ok {
		return n
	}
	b, err = os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	return kib(b, "RssAnon:") + kib(b, "RssShmem:")
}

// parseRollup reads /proc/PID/smaps_rollup: what is anonymous and what lies in
// shared memory, each in proportion; swapped out or not.
func parseRollup(b []byte) (int64, bool) {
	if !bytes.Contains(b, []byte("\nPss_Anon:")) {
		return 0, false
	}
	return kib(b, "Pss_Anon:") + kib(b, "Pss_Shmem:") + kib(b, "SwapPss:"), true
}

// kib reads a line such as "Pss_Anon:  12 kB" and returns bytes; 0 without one.
func kib(b []byte, name string) int64 {
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok {
			continue
		}
		f := bytes.Fields(rest)
		if len(f) == 0 {
			return 0
		}
		n, err := strconv.ParseInt(string(f[0]), 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			return 0
		}
		return n << 10
	}
	return 0
}

// lookPIDs counts processes and threads.
func (w *watch) lookPIDs() (passed bool, next time.Duration) {
	n := 0
	for _, pid := range descendants(w.root) {
		n += threads(pid)
	}
	return n > w.pids, time.Duration(w.pids-n) * taskTime
}

// threads counts the threads of a process; one when it has ended or does not tell.
func threads(pid int) int {
	f, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 1
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what has ended meanwhile does not count
	return max(len(names), 1)
}

func (w *watch) lookDisk() (passed bool, next time.Duration) {
	passed = w.disk.passed(func() []int { return descendants(w.root) })
	w.seen.disk = passed
	return passed, w.disk.next()
}
