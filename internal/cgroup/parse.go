// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// parseOwn reads /proc/PID/cgroup: the path of a process in each hierarchy of
// version 1, by controller, and in version 2, by the empty name (cgroups(7)).
func parseOwn(text string) map[Controller]string {
	paths := make(map[Controller]string)
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			paths[Controller(c)] = path.Clean(f[2])
		}
	}
	return paths
}

// A hierarchy is one mounted tree of groups.
type hierarchy struct {
	kind        Kind
	root        string // which group is mounted
	at          string // where
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
		h := hierarchy{root: unescape(f[3]), at: unescape(f[4])}
		switch s[0] {
		case "cgroup2":
			h.kind = V2
		case "cgroup":
			h.kind, h.controllers = V1, strings.Split(s[2], ",")
		default:
			continue
		}
		out = append(out, h)
	}
	return out
}

// unescape turns the octal escapes of mountinfo into what they stand for.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// folder returns where the group own of a hierarchy is seen, or "" when it is not.
func (h hierarchy) folder(own string) string {
	if own == "" || !path.IsAbs(h.root) || !path.IsAbs(h.at) || slices.Contains(strings.Split(own, "/"), "..") {
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

// parseCount reads a number, or "max", which is 0, false.
func parseCount(text string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	return n, err == nil
}

// parseKey reads the number behind a name in a file of the form "NAME NUMBER" on
// each line.
func parseKey(text, name string) (uint64, bool) {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, " "); ok && key == name {
			return parseCount(value)
		}
	}
	return 0, false
}

// parseCPUMax reads cpu.max, "QUOTA PERIOD", as processors; 0 is no limit.
func parseCPUMax(text string) float64 {
	quota, period, ok := strings.Cut(strings.TrimSpace(text), " ")
	q, ok1 := parseCount(quota)
	p, ok2 := parseCount(period)
	if !ok || !ok1 || !ok2 || p == 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// cpuPeriod is the time in which a share of processors is given out, in
// microseconds: the kernel's default.
const cpuPeriod = 100_000

// quota is how much of each period the group may run, in microseconds. The kernel
// takes no less than a millisecond.
func quota(cpus float64) int64 {
	const least = 1000
	return max(int64(math.Ceil(cpus*cpuPeriod)), least)
}

// An owner is the process that made a group. The numbers of processes are used
// again, the time of a start with the same number is not; both mean something in
// one process namespace only.
type owner struct {
	space   uint64 // the inode of its process namespace
	pid     int
	started uint64 // in clock ticks since the boot
}

// namePrefix marks our groups.
const namePrefix = "sallyport-"

// name is that of the owner's group number n.
func (o owner) name(n uint64) string {
	return fmt.Sprintf("%s%d-%d-%d-%d", namePrefix, o.space, o.pid, o.started, n)
}

// parseName finds the owner in the name of a group; false when it is not ours.
func parseName(name string) (o owner, ok bool) {
	rest, ok := strings.CutPrefix(name, namePrefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) != 4 {
		return o, false
	}
	var n [4]uint64
	for i, p := range parts {
		var err error
		if n[i], err = strconv.ParseUint(p, 10, 64); err != nil {
			return o, false
		}
	}
	if n[1] == 0 || n[1] > math.MaxInt32 {
		return o, false
	}
	o = owner{space: n[0], pid: int(n[1]), started: n[2]}
	return o, o.name(n[3]) == name
}

// parseStarted reads when a process started from its /proc/PID/stat: the 22nd
// field (proc_pid_stat(5)). The name in parentheses may hold anything.
func parseStarted(stat string) (uint64, bool) {
	_, rest, ok := strings.Cut(stat[strings.LastIndexByte(stat, ')')+1:], " ")
	f := strings.Fields(rest)
	const field = 22 - 3 // the first after the name is the third
	if !ok || len(f) <= field {
		return 0, false
	}
	return parseCount(f[field])
}
