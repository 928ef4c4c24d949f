// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
)

// parseOwn parses /proc/PID/cgroup: the path of the process by controller in each
// hierarchy of version 1, and by the empty name in version 2 (cgroups(7)).
func parseOwn(text string) map[controller]string {
	paths := make(map[controller]string)
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			paths[controller(c)] = path.Clean(f[2])
		}
	}
	return paths
}

// hierarchy is one mounted tree of control groups.
type hierarchy struct {
	by          string // executor.ByCgroupV1 or executor.ByCgroupV2
	root        string // the group that is mounted
	at          string // the mount point
	controllers []string
}

// parseMounts finds the hierarchies in /proc/PID/mountinfo
// (proc_pid_mountinfo(5)).
func parseMounts(text string) []hierarchy {
	var out []hierarchy
	for line := range strings.Lines(text) {
		// id parent dev root point options... - type source super-options
		before, after, ok := strings.Cut(line, " - ")
		f, s := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(s) < 3 {
			continue
		}
		h := hierarchy{root: hostfacts.UnescapeMount(f[3]), at: hostfacts.UnescapeMount(f[4])}
		switch s[0] {
		case "cgroup2":
			h.by = executor.ByCgroupV2
		case "cgroup":
			h.by, h.controllers = executor.ByCgroupV1, strings.Split(s[2], ",")
		default:
			continue
		}
		out = append(out, h)
	}
	return out
}

// directory returns where the group own of a hierarchy is visible, or "".
func (h hierarchy) directory(own string) string {
	if own == "" || !path.IsAbs(h.root) || !path.IsAbs(h.at) ||
		slices.Contains(strings.Split(own, "/"), "..") {
		return ""
	}
	rest, ok := strings.CutPrefix(own, path.Clean(h.root))
	switch {
	case h.root == "/":
		rest = own
	case !ok || rest != "" && rest[0] != '/':
		return "" // the mount shows another part of the tree
	}
	return path.Join(h.at, rest)
}

// parseCount parses a number. "max" gives 0, false.
func parseCount(text string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	return n, err == nil
}

// parseKey parses the number after a name in a file with lines of the form "NAME
// NUMBER" or "NAME NUMBER UNIT".
func parseKey(text, name string) (uint64, bool) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			return parseCount(f[1])
		}
	}
	return 0, false
}

// parseCPUMax parses cpu.max, "QUOTA PERIOD", as a number of processors; 0 is no limit.
func parseCPUMax(text string) float64 {
	quota, period, ok := strings.Cut(strings.TrimSpace(text), " ")
	q, ok1 := parseCount(quota)
	p, ok2 := parseCount(period)
	if !ok || !ok1 || !ok2 || p == 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// cpuPeriod is the period of the CPU quota in microseconds, the kernel's default.
const cpuPeriod = 100_000

// quota returns how much of each period a group may run, in microseconds. The kernel
// accepts nothing below a millisecond.
func quota(cpus float64) int64 {
	const least = 1000
	return max(int64(math.Ceil(cpus*cpuPeriod)), least)
}

// owner is the process that made a group. A process ID can be reused, but not with the
// same start time. Both are valid in one PID namespace only.
type owner struct {
	namespace uint64 // the inode of its PID namespace
	pid       int
	started   uint64 // in clock ticks since boot
}

// namePrefix marks the groups of this program.
const namePrefix = "sallyport-"

// name returns the name of the owner's group number n.
func (o owner) name(n uint64) string {
	return fmt.Sprintf("%s%d-%d-%d-%d", namePrefix, o.namespace, o.pid, o.started, n)
}

// parseName returns the owner in the name of a group, and false for a name of another
// form.
func parseName(name string) (o owner, ok bool) {
	var n uint64
	if _, err := fmt.Sscanf(name, namePrefix+"%d-%d-%d-%d", &o.namespace, &o.pid, &o.started,
		&n); err != nil {
		return owner{}, false
	}
	return o, o.pid > 0 && o.pid <= math.MaxInt32 && o.name(n) == name
}

// parseStarted returns the start time in /proc/PID/stat, its field 22
// (proc_pid_stat(5)). The name in parentheses may contain anything.
func parseStarted(stat string) (uint64, bool) {
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const field = 22 - 3 // the first one after the name is field 3
	if len(f) <= field {
		return 0, false
	}
	return parseCount(f[field])
}
