// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// watch measures a process tree again and again, for limits that nothing else enforces.
// The next measurement comes when the tree could have reached its limit at the speed of
// a fast machine. Measuring takes at most a tenth of one processor, except where a
// measurement of memory or processes takes longer than a few milliseconds. A tree can
// exceed a limit by what it does between two measurements. The zero watch watches
// nothing.
type watch struct {
	memory int64      // bytes, or 0
	pids   int        // processes and threads, or 0
	disk   *diskWatch // or nil
	files  memoryFiles

	processes func() []int // the IDs of the tree
	exceed    func(limit string)
	over      chan struct{} // closed to end the watch; nil where nothing is watched
	wg        sync.WaitGroup
	seen      seen
}

// seen is what a watch measured.
type seen struct {
	memory int64 // the most memory of the tree that was measured exactly; 0 for never
	disk   bool  // the limit on disk was exceeded
}

// The speed of trees and the frequency of measurements.
const (
	memoryRate = 4 << 30                // bytes that two processors can touch in a second
	diskRate   = 4 << 30                // bytes that can be written to a file system in memory in a second
	taskTime   = 20 * time.Microsecond  // for one more process, with as many processes that make them
	soonest    = 4 * time.Millisecond   // between two measurements
	latest     = 250 * time.Millisecond // between two measurements, however far the limit is
	share      = 10                     // the pause after a measurement, in multiples of its own duration
	lastCount  = 250 * time.Millisecond // the longest measurement of the disk after the end of the tree
	// the most of that pause where the measurement only waited for a busy machine
	longest = 40 * time.Millisecond
)

// begin starts the watch. exceed is called from another goroutine with the limit that
// was exceeded, at most once.
func (w *watch) begin(processes func() []int, exceed func(limit string)) {
	var tasks []task
	if w.memory > 0 {
		w.files.grown() // from now on
		tasks = append(tasks, task{limit: executor.LimitMemory, measure: w.measureMemory, pause: longest})
	}
	if w.pids > 0 {
		tasks = append(tasks, task{limit: executor.LimitPIDs, measure: w.measurePIDs, pause: longest})
	}
	if w.disk != nil {
		tasks = append(tasks, task{limit: executor.LimitDisk, measure: w.measureDisk, pause: time.Minute})
	}
	if len(tasks) > 0 {
		w.processes, w.exceed, w.over = processes, exceed, make(chan struct{})
		w.wg.Go(func() { w.run(tasks) })
	}
}

// finish ends the watch, measures once more what outlives the tree, and returns what
// was measured. wrote is how many bytes the tree has written to disks.
func (w *watch) finish(wrote int64) seen {
	if w.over != nil {
		close(w.over)
		w.wg.Wait()
	}
	if w.disk != nil && !w.seen.disk {
		late := make(chan struct{})
		defer time.AfterFunc(lastCount, func() { close(late) }).Stop()
		w.seen.disk = w.lastDisk(wrote, late)
	}
	return w.seen
}

// task is one measurement. It returns whether the limit was exceeded, and when the next
// one is due.
type task struct {
	limit   string
	measure func() (exceeded bool, next time.Duration)
	pause   time.Duration // the longest pause because of the duration of a measurement
	due     time.Time
}

func (w *watch) run(tasks []task) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.over:
			return
		case <-timer.C:
		}
		next := latest
		for i := range tasks {
			t := &tasks[i]
			if begin := time.Now(); !t.due.After(begin) {
				exceeded, in := t.measure()
				if exceeded {
					w.exceed(t.limit)
					return
				}
				in = max(min(in, latest), soonest, min(share*time.Since(begin), t.pause))
				t.due = time.Now().Add(in)
			}
			next = min(next, time.Until(t.due))
		}
		timer.Reset(max(next, 0))
	}
}

// until returns how long something takes at least to grow by n.
func until(n int64, perSecond float64) time.Duration {
	return time.Duration(float64(max(n, 0)) / perSecond * float64(time.Second))
}

// measureMemory adds up resident memory and the files in memory of the machine first. That
// counts shared pages several times and files of other programs, so it only says when to ask
// for the exact sum, which takes the kernel longer.
func (w *watch) measureMemory() (exceeded bool, next time.Duration) {
	processes := w.processes()
	sum := total(processes, resident) + w.files.grown()
	if sum > w.memory {
		sum = w.exactMemory(processes)
		w.seen.memory = max(w.seen.memory, sum)
	}
	return sum > w.memory, until(w.memory-sum, memoryRate)
}

// exactMemory returns the memory of processes and their files in memory. What is both counts
// once, which is looked at only where it decides.
func (w *watch) exactMemory(processes []int) int64 {
	sum, files := total(processes, proportional), w.files.held(processes)
	if max(sum, files.bytes) > w.memory || sum+files.bytes <= w.memory {
		return max(sum, files.bytes, min(sum+files.bytes, w.memory))
	}
	mapped := total(processes, files.mapped)
	// A process that ends meanwhile has its files open for longer than it has them mapped.
	sum = min(sum, total(processes, proportional))
	return max(sum, files.bytes, sum+files.bytes-mapped)
}

func total(processes []int, of func(pid int) int64) int64 {
	var sum int64
	for _, pid := range processes {
		sum += of(pid)
	}
	return sum
}

// resident returns the resident memory of a process in bytes; 0 when it has ended.
func resident(pid int) int64 {
	return parseStatm(readProc(pid, "statm")) * int64(os.Getpagesize())
}

// proportional returns the memory of a process that is not backed by files, in bytes,
// with its part of shared memory. Kernels that do not tell that part give its own
// memory.
func proportional(pid int) int64 {
	if n, ok := parseRollup(readProc(pid, "smaps_rollup")); ok {
		return n
	}
	status := readProc(pid, "status")
	return kib(status, "RssAnon:") + kib(status, "RssShmem:")
}

// readProc returns a file of a process; empty when it has ended.
func readProc(pid int, name string) string { return read(fmt.Sprintf("/proc/%d", pid), name) }

// parseStatm returns the resident pages in /proc/PID/statm, its second number
// (proc_pid_statm(5)).
func parseStatm(text string) int64 {
	f := strings.Fields(text)
	if len(f) < 2 {
		return 0
	}
	return plausible(parseCount(f[1]))
}

// parseRollup parses /proc/PID/smaps_rollup: anonymous and shared memory, each in
// proportion, swapped out or not.
func parseRollup(text string) (int64, bool) {
	if _, ok := parseKey(text, "Pss_Anon:"); !ok {
		return 0, false
	}
	return kib(text, "Pss_Anon:") + kib(text, "Pss_Shmem:") + kib(text, "SwapPss:"), true
}

// kib parses a line such as "Pss_Anon:  12 kB" and returns bytes; 0 without one.
func kib(text, name string) int64 { return plausible(parseKey(text, name)) << 10 }

// plausible returns n, or 0 for a number that no kernel reports and that could overflow
// a sum.
func plausible(n uint64, ok bool) int64 {
	if !ok || n > 1<<50 {
		return 0
	}
	return int64(n)
}

// measurePIDs counts processes and threads.
func (w *watch) measurePIDs() (exceeded bool, next time.Duration) {
	n := int(total(w.processes(), threads))
	return n > w.pids, time.Duration(w.pids-n) * taskTime
}

// threads counts the threads of a process; 1 when it has ended.
func threads(pid int) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 1
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // threads that have ended do not count
	return int64(max(len(names), 1))
}

func (w *watch) measureDisk() (exceeded bool, next time.Duration) {
	w.seen.disk, _ = w.disk.exceeded(w.processes, 0, w.over) // finish counts again what its end cut off
	return w.seen.disk, w.disk.next()
}

// lastDisk looks at the disk after the end of the tree. Where late is closed before all is counted, the free
// space decides.
func (w *watch) lastDisk(wrote int64, late <-chan struct{}) bool {
	exceeded, whole := w.disk.exceeded(nil, wrote, late)
	return exceeded || !whole && w.disk.fell > w.disk.limit
}
