// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Group holds the limits of one run. It may lie in several hierarchies. Its
// methods must not be called at the same time, but for Watch's goroutine.
type Group struct {
	tree    *Tree
	unified string                // folder of version 2; empty for none
	single  map[Controller]string // folders of version 1
	made    []string              // all folders, in the order of their making

	folder *os.File   // the folder of version 2, until Started
	lists  []*os.File // the files "tasks" of version 1, until Started

	event *os.File // tells of a want of memory, version 1; nil where the kernel does not
	wait  sync.WaitGroup
}

// New makes a group with these limits. What [Tree.By] does not offer is an error;
// nothing is left behind then. The caller enters it by Folder and Lists, calls
// Started, and Remove when everything in it has ended.
func (t *Tree) New(l Limits) (_ *Group, err error) {
	t.retry()
	g := &Group{tree: t, single: make(map[Controller]string)}
	defer func() {
		if err != nil {
			g.Remove()
		}
	}()
	for c, wanted := range l.has() {
		if wanted && t.By(c) == "" {
			return nil, &Error{Path: string(c), Err: errors.ErrUnsupported}
		}
	}
	if err := g.makeUnified(l); err != nil {
		return nil, err
	}
	return g, g.makeSingle(l)
}

// makeUnified makes the part of version 2, if the limits need it.
func (g *Group) makeUnified(l Limits) (err error) {
	t := g.tree
	needed := false
	for c, wanted := range l.has() {
		needed = needed || wanted && t.on[c]
	}
	if !needed {
		return nil
	}
	if g.unified, err = t.make(t.unified); err != nil {
		return &Error{Path: g.unified, Err: err}
	}
	g.made = append(g.made, g.unified)
	l = l.lower(t.above).only(t.on)
	set := func(wanted bool, name, value string) {
		if wanted && err == nil {
			err = put(g.unified, name, value)
		}
	}
	set(l.Memory > 0, "memory.max", fmt.Sprint(l.Memory))
	set(l.PIDs > 0, "pids.max", fmt.Sprint(l.PIDs))
	set(l.CPUs > 0, "cpu.max", fmt.Sprintf("%d %d", quota(l.CPUs), cpuPeriod))
	// A tree that has lost one process at random helps nobody: all of it goes.
	set(l.Memory > 0, "memory.oom.group", "1")
	if err == nil && l.Memory > 0 {
		// Kernels without swap accounting do not have the file.
		if err = put(g.unified, "memory.swap.max", "0"); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	if g.folder, err = os.Open(g.unified); err != nil {
		return &Error{Path: g.unified, Err: plainest(err)}
	}
	return nil
}

// makeSingle makes the parts of version 1. Controllers that are mounted together
// share one folder.
func (g *Group) makeSingle(l Limits) error {
	t := g.tree
	wanted := l.has()
	at := make(map[string]string)
	for _, c := range Controllers() {
		if !wanted[c] || t.on[c] {
			continue
		}
		dir, ok := at[t.single[c]]
		if !ok {
			var err error
			if dir, err = t.make(t.single[c]); err != nil {
				return &Error{Path: dir, Err: err}
			}
			at[t.single[c]] = dir
			g.made = append(g.made, dir)
			list := filepath.Join(dir, "tasks")
			f, err := os.OpenFile(list, os.O_WRONLY, 0)
			if err != nil {
				return &Error{Path: list, Err: plainest(err)}
			}
			g.lists = append(g.lists, f)
		}
		g.single[c] = dir
		if err := setSingle(dir, c, l); err != nil {
			return err
		}
		if c == Memory {
			// Before anything runs there: a want that nobody waits for yet is kept.
			g.event, _ = oomEvent(dir) // without it the kernel kills all the same, and Read tells
		}
	}
	return nil
}

// setSingle sets a limit of version 1.
func setSingle(dir string, c Controller, l Limits) error {
	switch c {
	case Memory:
		if err := put(dir, "memory.limit_in_bytes", fmt.Sprint(l.Memory)); err != nil {
			return err
		}
		// With swap, never below the one without. Kernels may count no swap.
		err := put(dir, "memory.memsw.limit_in_bytes", fmt.Sprint(l.Memory))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) {
			err = put(dir, "memory.swappiness", "0")
		}
		return err
	case PIDs:
		return put(dir, "pids.max", fmt.Sprint(l.PIDs))
	case CPU:
		if err := put(dir, "cpu.cfs_period_us", fmt.Sprint(cpuPeriod)); err != nil {
			return err
		}
		return put(dir, "cpu.cfs_quota_us", fmt.Sprint(quota(l.CPUs)))
	}
	return nil
}

// AllowPIDs sets another limit on processes and threads. It does nothing to a group
// that has none.
func (g *Group) AllowPIDs(n int) error {
	switch g.By(PIDs) {
	case V1:
		return put(g.single[PIDs], "pids.max", fmt.Sprint(n))
	case V2:
		return put(g.unified, "pids.max", fmt.Sprint(lesser(n, g.tree.above.PIDs)))
	}
	return nil
}

// By returns how the limit of a controller is held in this group; empty when it is
// not.
func (g *Group) By(c Controller) Kind {
	switch {
	case g.single[c] != "":
		return V1
	case g.unified != "" && g.tree.on[c]:
		return V2
	}
	return ""
}

// Folder is the folder of version 2 for clone3(2); nil for none, and after Started.
func (g *Group) Folder() *os.File { return g.folder }

// Lists are the open lists of tasks of version 1, into which a task of the run
// writes itself; none after Started.
func (g *Group) Lists() []*os.File { return g.lists }

// Started closes what was only needed to enter the group. It may be called twice.
func (g *Group) Started() {
	if g.folder != nil {
		_ = g.folder.Close()
	}
	for _, f := range g.lists {
		_ = f.Close()
	}
	g.folder, g.lists = nil, nil
}

// Watch has f called once, from another goroutine, when the group of version 1 runs
// out of memory, or has done so since it was made; Read tells of it afterwards as
// well. In version 2 the kernel ends everything in the group by itself, and nothing is
// watched. It is called at most once, before Remove.
func (g *Group) Watch(f func()) {
	if g.event == nil {
		return // the kernel kills all the same, and Read tells
	}
	event := g.event
	g.wait.Go(func() {
		var count [8]byte
		if _, err := event.Read(count[:]); err == nil {
			f()
		}
	})
}

// oomEvent returns an event counter that the kernel raises when a group of version
// 1 runs out of memory (memory.txt, "OOM Control"). The kernel kills one process of it
// then and lets the others go on. Its switch against that, memory.oom_control, is left
// alone: with it a system call for which the kernel wants memory fails with ENOMEM, or
// ENFILE, and nobody is told.
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

// Read returns what the group counted so far.
func (g *Group) Read() Usage {
	var u Usage
	memory, pids := g.single[Memory], g.single[PIDs]
	count := func(dir, name string) uint64 {
		n, _ := parseCount(read(dir, name)) // a file that is not there counts nothing
		return n
	}
	key := func(dir, name, word string) uint64 {
		n, _ := parseKey(read(dir, name), word)
		return n
	}
	const most = 1 << 62
	if memory != "" {
		u.Peak = int64(min(count(memory, "memory.max_usage_in_bytes"), most))
		u.OOMKills = key(memory, "memory.oom_control", "oom_kill")
	}
	if g.unified != "" && g.By(Memory) == V2 {
		u.Peak = int64(min(count(g.unified, "memory.peak"), most))
		u.OOMKills = key(g.unified, "memory.events", "oom_kill")
	}
	if g.By(PIDs) == V2 {
		pids = g.unified
	}
	if pids != "" {
		u.Tasks = int(min(count(pids, "pids.peak"), most))
		u.Refused = key(pids, "pids.events", "max")
	}
	if g.unified != "" {
		stat := read(g.unified, "cpu.stat")
		user, ok := parseKey(stat, "user_usec")
		system, ok2 := parseKey(stat, "system_usec")
		u.CPU = ok && ok2
		u.User, u.System = time.Duration(user)*time.Microsecond, time.Duration(system)*time.Microsecond
	}
	return u
}

// Unwatch ends what Watch began, and waits for its function if that was called. It
// may be called twice, and without Watch.
func (g *Group) Unwatch() {
	if g.event != nil {
		_ = g.event.Close() // ends the wait
		g.wait.Wait()
		g.event = nil
	}
}

// Remove removes the group, at once or as soon as the kernel sees that it is empty;
// [Tree.Close] waits for that. It may be called twice.
func (g *Group) Remove() {
	g.Started()
	g.Unwatch()
	for _, dir := range g.made {
		g.tree.remove(dir)
	}
	g.made = nil
}

// String names the folders, for people.
func (g *Group) String() string { return strings.Join(g.made, " ") }
