// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc/PID/stat: the kernel tells hundredths of a second to all
// programs.
const tick = time.Second / 100

// Load returns the processor time that a tree has used so far, and the memory of its processes in bytes.
// The reaper is not part of it, but has collected those whose parents have ended.
func Load(reaper int, processes []int) (cpu time.Duration, memory int64) {
	_, cpu = parseTimes(readProc(reaper, "stat"))
	for _, pid := range processes {
		own, collected := parseTimes(readProc(pid, "stat"))
		cpu += own + collected
	}
	return cpu, total(processes, proportional)
}

// parseTimes returns from /proc/PID/stat (proc_pid_stat(5)) what a process has used, and what the children
// that it has collected had used.
func parseTimes(stat string) (own, collected time.Duration) {
	// The name in parentheses may hold any byte; the other fields follow the last one.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user = 11 // the first of four
	if len(fields) < user+4 {
		return 0, 0
	}
	var times [4]time.Duration
	for i := range times {
		if n, err := strconv.ParseUint(fields[user+i], 10, 32); err == nil { // a year
			times[i] = time.Duration(n) * tick
		}
	}
	return times[0] + times[1], times[2] + times[3]
}
