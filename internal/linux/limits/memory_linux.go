// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
)

// memoryFiles are the files in memory of a process tree: those without a name (memfd) and
// those in file systems in memory that only the tree has, as /dev/shm. What is written to
// them is in no process's resident memory unless it is mapped and touched.
type memoryFiles struct {
	least int64 // the least that all of the machine was seen to hold; 0 before the first look
}

// grown returns by how much the files in memory and the swapped out memory of the whole
// machine have grown, which is at least by how much the tree's files have.
func (m *memoryFiles) grown() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	now := plausible((uint64(s.Sharedram)+uint64(s.Totalswap)-uint64(s.Freeswap))*uint64(s.Unit), true) + 1 //nolint:unconvert // their types differ between architectures
	if m.least == 0 || now < m.least {
		m.least = now
	}
	return now - m.least
}

// held are the files in memory of a tree at one moment.
type held struct {
	bytes   int64
	files   map[string]bool // without a name, as /proc/PID/maps spells device and inode
	systems map[string]bool // file systems, as there
}

// held counts them. A file that no process has open, because it is mapped only or in the
// queue of a socket, does not count.
func (m *memoryFiles) held(processes []int) held {
	h := held{files: map[string]bool{}, systems: map[string]bool{}}
	ours := map[string]bool{}
	for _, o := range hostfacts.ParseMounts(read("/proc/self", "mountinfo")) {
		ours[o.Device] = true
	}
	seen := map[string]bool{} // mount namespaces
	for _, pid := range processes {
		if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err == nil && !seen[ns] {
			seen[ns] = true
			h.inFileSystems(pid, ours)
		}
		h.unnamed(pid)
	}
	return h
}

// inFileSystems counts what is in file systems in memory that a process has and we do not.
func (h *held) inFileSystems(pid int, ours map[string]bool) {
	for _, o := range hostfacts.ParseMounts(readProc(pid, "mountinfo")) {
		device := mapsDevice(o.Device)
		var st unix.Statfs_t
		if ours[o.Device] || h.systems[device] || unix.Statfs(fmt.Sprintf("/proc/%d/root%s", pid, o.Point),
			&st) != nil || st.Type != unix.TMPFS_MAGIC {
			continue
		}
		h.systems[device] = true
		h.bytes += plausible((st.Blocks-min(st.Bfree, st.Blocks))*uint64(st.Bsize), true)
	}
}

// unnamed counts the files without a name that a process has open.
func (h *held) unnamed(pid int) {
	openFiles(pid, func(at, to string) {
		var st unix.Statx_t
		if !strings.HasPrefix(to, "/memfd:") ||
			unix.Statx(unix.AT_FDCWD, at, 0, unix.STATX_BASIC_STATS, &st) != nil {
			return
		}
		id := fmt.Sprintf("%02x:%02x %d", st.Dev_major, st.Dev_minor, st.Ino)
		if !h.files[id] {
			h.files[id] = true
			h.bytes += int64(st.Blocks) * statBlock
		}
	})
}

// mapped returns how much of what is held a process counts as its own memory as well.
func (h *held) mapped(pid int) int64 {
	var sum int64
	counted := false
	for line := range strings.Lines(readProc(pid, "smaps")) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 5 && strings.Contains(f[0], "-"): // START-END FLAGS OFFSET DEVICE INODE NAME
			counted = h.systems[f[3]] || h.files[f[3]+" "+f[4]]
		case counted && f[0] == "Pss:":
			sum += kib(line, "Pss:")
		}
	}
	return sum
}

// mapsDevice returns a device of mountinfo (decimal) as /proc/PID/maps spells it.
func mapsDevice(device string) string {
	var major, minor int
	if _, err := fmt.Sscanf(device, "%d:%d", &major, &minor); err != nil {
		return ""
	}
	return fmt.Sprintf("%02x:%02x", major, minor)
}

// openFiles calls f for each descriptor of a process with the link to it in /proc and what that
// says. A process that has ended or may not be examined has none.
func openFiles(pid int, f func(at, to string)) {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if to, err := os.Readlink(dir + e.Name()); err == nil {
			f(dir+e.Name(), to)
		}
	}
}
