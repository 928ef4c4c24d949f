// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
)

// controller is a controller of control groups by the kernel's name (cgroups(7)).
type controller string

const (
	memory controller = "memory"
	cpu    controller = "cpu"
	pids   controller = "pids"
)

// controllers are those that limits need.
var controllers = []controller{memory, cpu, pids}

// only returns those limits of r that need a controller which keep accepts.
func only(r executor.Resources, keep func(controller) bool) executor.Resources {
	var out executor.Resources
	if keep(memory) {
		out.Memory = r.Memory
	}
	if keep(cpu) {
		out.CPUs = r.CPUs
	}
	if keep(pids) {
		out.PIDs = r.PIDs
	}
	return out
}

// needs returns whether one of the limits needs a controller.
func needs(r executor.Resources, c controller) bool {
	return only(r, func(k controller) bool { return k == c }) != executor.Resources{}
}

// lower returns the lower one of both limits on memory, processors and processes.
func lower(a, b executor.Resources) executor.Resources {
	return executor.Resources{
		Memory: lesser(a.Memory, b.Memory), CPUs: lesser(a.CPUs, b.CPUs), PIDs: lesser(a.PIDs, b.PIDs),
	}
}

// lesser returns the smaller of two limits, where zero is none.
func lesser[T int | int64 | float64](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// group is a control group with the limits of one command. It may have directories in
// several hierarchies. Except for the goroutine of watch, its methods must not be called
// concurrently.
type group struct {
	tree    *tree
	unified string                // the directory of version 2; empty for none
	dirs    map[controller]string // the directory by controller
	made    []string              // all directories

	// What a task needs to enter the group, until started.
	dir   *os.File   // the directory of version 2
	lists []*os.File // the "tasks" files of version 1

	event *os.File // signals memory exhaustion in version 1; nil where the kernel cannot
	wait  sync.WaitGroup
	oom   atomic.Bool // event was signaled
}

// newGroup makes a group with the limits of r that groups can enforce here; nil when
// there is none. After an error nothing is left behind.
func (t *tree) newGroup(r executor.Resources) (_ *group, err error) {
	t.retry()
	r = only(r, func(c controller) bool { return t.by(c) != "" })
	if r == (executor.Resources{}) {
		return nil, nil
	}
	g := &group{tree: t, dirs: make(map[controller]string)}
	defer func() {
		if err != nil {
			g.remove()
		}
	}()
	if slices.ContainsFunc(controllers, func(c controller) bool { return t.on[c] && needs(r, c) }) {
		if err := g.makeUnified(r); err != nil {
			return nil, err
		}
	}
	for _, c := range controllers {
		if needs(r, c) && !t.on[c] {
			if err := g.makeSingle(c, r); err != nil {
				return nil, err
			}
		}
	}
	return g, nil
}

// makeUnified makes the directory of version 2. The limits of the groups that were
// passed over when the tree was found apply to it.
func (g *group) makeUnified(r executor.Resources) error {
	dir, err := g.tree.make(g.tree.unified)
	if err != nil {
		return err
	}
	g.unified, g.made = dir, append(g.made, dir)
	for c := range g.tree.on {
		g.dirs[c] = dir
	}
	r = only(lower(r, g.tree.above), func(c controller) bool { return g.tree.on[c] })
	for _, f := range []struct {
		set         bool
		name, value string
	}{
		{r.Memory > 0, "memory.max", fmt.Sprint(r.Memory)},
		{r.Memory > 0, "memory.swap.max", "0"},
		{r.Memory > 0, "memory.oom.group", "1"}, // kill the whole tree, not one process of it
		{r.PIDs > 0, "pids.max", fmt.Sprint(r.PIDs)},
		{r.CPUs > 0, "cpu.max", fmt.Sprintf("%d %d", quota(r.CPUs), cpuPeriod)},
	} {
		if !f.set {
			continue
		}
		err := put(dir, f.name, f.value)
		if f.name == "memory.swap.max" && errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without swap accounting
		}
		if err != nil {
			return err
		}
	}
	g.dir, err = os.Open(dir)
	return err
}

// makeSingle sets the limit of a controller of version 1. Controllers that are mounted
// together share a directory.
func (g *group) makeSingle(c controller, r executor.Resources) error {
	i := slices.IndexFunc(g.made, func(dir string) bool { return filepath.Dir(dir) == g.tree.single[c] })
	if i < 0 {
		dir, err := g.tree.make(g.tree.single[c])
		if err != nil {
			return err
		}
		i, g.made = len(g.made), append(g.made, dir)
		list, err := os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		g.lists = append(g.lists, list)
	}
	dir := g.made[i]
	g.dirs[c] = dir
	switch c {
	case pids:
		return put(dir, "pids.max", fmt.Sprint(r.PIDs))
	case cpu:
		return errors.Join(put(dir, "cpu.cfs_period_us", fmt.Sprint(cpuPeriod)),
			put(dir, "cpu.cfs_quota_us", fmt.Sprint(quota(r.CPUs))))
	}
	if err := put(dir, "memory.limit_in_bytes", fmt.Sprint(r.Memory)); err != nil {
		return err
	}
	// The limit with swap may not be below the one without, so it comes second.
	err := put(dir, "memory.memsw.limit_in_bytes", fmt.Sprint(r.Memory))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) {
		err = put(dir, "memory.swappiness", "0") // a kernel without swap accounting
	}
	if err == nil {
		// Before a task enters: the counter keeps what happens before watch is called.
		g.event, _ = oomEvent(dir) // without it the kernel kills all the same, and read tells
	}
	return err
}

// allowPIDs changes the limit on processes and threads, if the group has one.
func (g *group) allowPIDs(n int) error {
	switch g.by(pids) {
	case "":
		return nil
	case executor.ByCgroupV2:
		n = lesser(n, g.tree.above.PIDs)
	}
	return put(g.dirs[pids], "pids.max", fmt.Sprint(n))
}

// by returns the version that enforces the limit of a controller in this group, or ""
// when the group has none. A nil group has none.
func (g *group) by(c controller) string {
	switch {
	case g == nil || g.dirs[c] == "":
		return ""
	case g.dirs[c] == g.unified:
		return executor.ByCgroupV2
	}
	return executor.ByCgroupV1
}

// started closes what was only needed to enter the group. It may be called twice.
func (g *group) started() {
	if g.dir != nil {
		_ = g.dir.Close()
	}
	for _, f := range g.lists {
		_ = f.Close()
	}
	g.dir, g.lists = nil, nil
}

// watch calls f once, from another goroutine, when a group of version 1 runs out of
// memory or has done so since it was made. In version 2 the kernel kills the whole
// group, so nothing is watched. Call watch at most once.
func (g *group) watch(f func()) {
	event := g.event
	if event == nil {
		return
	}
	g.wait.Go(func() {
		var count [8]byte
		if _, err := event.Read(count[:]); err == nil {
			g.oom.Store(true)
			f()
		}
	})
}

// oomEvent returns an event counter that the kernel raises when a group of version 1
// runs out of memory (memory.txt, "OOM Control"). The kernel then kills one process of
// the group. The switch against that, memory.oom_control, stays off: with it, system
// calls that need kernel memory fail with ENOMEM or ENFILE and no event is raised.
func oomEvent(dir string) (*os.File, error) {
	control, err := os.Open(filepath.Join(dir, "memory.oom_control"))
	if err != nil {
		return nil, err
	}
	defer control.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	event := os.NewFile(uintptr(fd), "out of memory")
	if err := put(dir, "cgroup.event_control", fmt.Sprintf("%d %d", fd, control.Fd())); err != nil {
		_ = event.Close()
		return nil, err
	}
	return event, nil
}

// counted is what a group counted. Zero members are not known.
type counted struct {
	cpu          bool          // user and system are known (version 2 only)
	user, system time.Duration // processor time
	peak         int64         // the most memory charged at once in bytes, file cache included
	tasks        int           // the most processes and threads at once
	oomKills     uint64        // processes that the kernel killed when memory ran out
	refused      uint64        // processes and threads that could not be created
}

// read returns what the group counted so far. A nil group counts nothing.
func (g *group) read() counted {
	var u counted
	if g == nil {
		return u
	}
	count := func(dir, name string) uint64 {
		const most = 1 << 62
		n, _ := parseCount(read(dir, name)) // a missing file counts 0
		return min(n, most)
	}
	key := func(dir, name, word string) uint64 {
		n, _ := parseKey(read(dir, name), word)
		return n
	}
	dir := g.dirs[memory]
	switch g.by(memory) {
	case executor.ByCgroupV1:
		u.peak, u.oomKills = int64(count(dir, "memory.max_usage_in_bytes")),
			key(dir, "memory.oom_control", "oom_kill")
	case executor.ByCgroupV2:
		u.peak, u.oomKills = int64(count(dir, "memory.peak")), key(dir, "memory.events", "oom_kill")
	}
	if g.oom.Load() {
		u.oomKills = max(u.oomKills, 1) // older kernels do not count
	}
	if dir := g.dirs[pids]; dir != "" {
		u.tasks, u.refused = int(count(dir, "pids.peak")), key(dir, "pids.events", "max")
	}
	if g.unified != "" {
		stat := read(g.unified, "cpu.stat")
		user, ok := parseKey(stat, "user_usec")
		system, ok2 := parseKey(stat, "system_usec")
		u.cpu = ok && ok2
		u.user, u.system = time.Duration(user)*time.Microsecond, time.Duration(system)*time.Microsecond
	}
	return u
}

// unwatch ends what watch began and waits for its function. It may be called twice, and
// without watch.
func (g *group) unwatch() {
	if g.event != nil {
		_ = g.event.Close() // ends the read
		g.wait.Wait()
		g.event = nil
	}
}

// remove removes the group, now or as soon as the kernel reports it empty; closing the
// tree waits for that. It may be called twice.
func (g *group) remove() {
	g.started()
	g.unwatch()
	for _, dir := range g.made {
		g.tree.remove(dir)
	}
	g.made = nil
}
