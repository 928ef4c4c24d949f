// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Tree is where groups can be made. Its methods may be called from several
// goroutines at once.
type Tree struct {
	sys    system
	owner  owner
	number atomic.Uint64

	unified string                // the folder in which groups of version 2 are made; empty for none
	on      map[Controller]bool   // what those have
	single  map[Controller]string // the folders for version 1
	above   Limits                // of the groups that version 2 was looked for above of
	stepped string                // where the caller was put, see makeRoom; empty for nowhere
	whys    []string

	mu      sync.Mutex
	pending []string // groups that could not be removed yet
}

// A system is the kernel, or a folder that plays it.
type system struct {
	own, mounts string // /proc/self/cgroup and /proc/self/mountinfo
	mkdir       func(string) error
	rmdir       func(string) error
	enter       func(dir string) error // try whether a process can be started in a group
	alive       func(owner) bool
}

// Find tries what can be had. It takes some hundred microseconds, and about a
// millisecond where version 2 has controllers, because a start in a group is tried.
// Groups that processes have left behind which are gone are removed.
//
// Version 2 lets a group either hold processes or share controllers out. Where this
// process is alone in a group that was delegated to it, as in a scope of systemd's
// with Delegate=yes, Find therefore moves it into a group of its own below; Close
// moves it back. Otherwise groups above are looked at, and the limits of those that
// were passed over become limits of every group that is made.
func Find() *Tree {
	own, _ := os.ReadFile("/proc/self/cgroup") // without it nothing is found, which Why tells
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	return find(system{
		own: string(own), mounts: string(mounts),
		mkdir: func(dir string) error { return syscall.Mkdir(dir, 0o755) },
		rmdir: syscall.Rmdir, enter: enter, alive: owner.alive,
	}, self())
}

// self is this process as an owner.
func self() owner {
	o := owner{pid: os.Getpid()}
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) == nil {
		o.space = st.Ino
	}
	stat, _ := os.ReadFile("/proc/self/stat") // 0 is as good as any other time, if nobody knows it
	o.started, _ = parseStarted(string(stat))
	return o
}

// alive reports whether an owner still runs, or is none of those that can be seen.
func (o owner) alive() bool {
	if o.space != self().space {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", o.pid))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	started, ok := parseStarted(string(stat))
	return !ok || started == o.started
}

// enter tries to start a program in a group. Its name is empty, so that the kernel
// refuses it after it has let the new process into the group.
func enter(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = syscall.ForkExec("", []string{""}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())},
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func find(sys system, o owner) *Tree {
	t := &Tree{sys: sys, owner: o, on: make(map[Controller]bool), single: make(map[Controller]string)}
	own := parseOwn(sys.own)
	for _, h := range parseMounts(sys.mounts) {
		if h.kind == V2 && t.unified == "" {
			t.findUnified(h, h.folder(own[""]))
		}
	}
	for _, h := range parseMounts(sys.mounts) {
		for _, c := range Controllers() {
			if h.kind == V1 && !t.on[c] && t.single[c] == "" && slices.Contains(h.controllers, string(c)) {
				t.findSingle(c, h.folder(own[c]))
			}
		}
	}
	return t
}

// findSingle tries a hierarchy of version 1.
func (t *Tree) findSingle(c Controller, dir string) {
	if dir == "" {
		return
	}
	t.sweep(dir)
	name, err := t.make(dir)
	if err != nil {
		t.not(dir, err)
		return
	}
	err = writable(filepath.Join(name, "tasks"))
	t.remove(name)
	if err != nil {
		t.not(dir, err)
		return
	}
	t.single[c] = dir
}

// findUnified tries the own group of version 2 and those above it.
func (t *Tree) findUnified(h hierarchy, own string) {
	if own == "" {
		return
	}
	var above Limits
	for dir := own; ; dir = path.Dir(dir) {
		t.sweep(dir)
		on, err := t.tryUnified(dir, dir == own)
		if len(on) > 0 {
			t.unified, t.on, t.above = dir, on, above
			return
		}
		t.not(dir, err)
		if dir == path.Clean(h.at) {
			return
		}
		above = above.lower(limitsOf(dir))
	}
}

// limitsOf reads the limits of a group of version 2.
func limitsOf(dir string) Limits {
	memory, _ := parseCount(read(dir, "memory.max"))
	pids, _ := parseCount(read(dir, "pids.max"))
	const most = 1 << 62
	return Limits{Memory: int64(min(memory, most)), PIDs: int(min(pids, most)), CPUs: parseCPUMax(read(dir, "cpu.max"))}
}

// tryUnified makes a group in dir and enters it, and returns what it has.
func (t *Tree) tryUnified(dir string, own bool) (map[Controller]bool, error) {
	offered := strings.Fields(read(dir, "cgroup.controllers"))
	if !slices.ContainsFunc(Controllers(), func(c Controller) bool { return slices.Contains(offered, string(c)) }) {
		return nil, errors.New("it has none of the controllers memory, cpu and pids")
	}
	name, err := t.make(dir)
	if err != nil {
		return nil, err
	}
	defer t.remove(name)
	if err := t.shareOut(dir, offered, own); err != nil {
		return nil, err
	}
	if err := t.sys.enter(name); err != nil {
		return nil, err
	}
	on := make(map[Controller]bool)
	for _, c := range strings.Fields(read(name, "cgroup.controllers")) {
		if slices.Contains(Controllers(), Controller(c)) {
			on[Controller(c)] = true
		}
	}
	return on, nil
}

// shareOut has dir hand the controllers that are wanted to the groups in it.
func (t *Tree) shareOut(dir string, offered []string, own bool) error {
	shared := strings.Fields(read(dir, "cgroup.subtree_control"))
	var err error
	for _, c := range Controllers() {
		if slices.Contains(shared, string(c)) || !slices.Contains(offered, string(c)) {
			continue
		}
		e := put(dir, "cgroup.subtree_control", "+"+string(c))
		if errors.Is(e, syscall.EBUSY) && own && t.stepped == "" && t.makeRoom(dir) {
			e = put(dir, "cgroup.subtree_control", "+"+string(c))
		}
		if e != nil {
			err = e
			continue
		}
		shared = append(shared, string(c))
	}
	if slices.ContainsFunc(Controllers(), func(c Controller) bool { return slices.Contains(shared, string(c)) }) {
		return nil
	}
	return err
}

// makeRoom moves this process into a group below its own, if it is alone there.
func (t *Tree) makeRoom(dir string) bool {
	if strings.TrimSpace(read(dir, "cgroup.procs")) != fmt.Sprint(t.owner.pid) {
		return false
	}
	name, err := t.make(dir)
	if err != nil {
		return false
	}
	if put(name, "cgroup.procs", fmt.Sprint(t.owner.pid)) != nil {
		t.remove(name)
		return false
	}
	t.stepped = name
	return true
}

// stepBack undoes makeRoom.
func (t *Tree) stepBack() error {
	if t.stepped == "" {
		return nil
	}
	dir := path.Dir(t.stepped)
	for _, c := range Controllers() {
		if t.on[c] {
			_ = put(dir, "cgroup.subtree_control", "-"+string(c)) // what stays shows in the next line
		}
	}
	if err := put(dir, "cgroup.procs", fmt.Sprint(t.owner.pid)); err != nil {
		return err
	}
	t.remove(t.stepped)
	t.stepped = ""
	return nil
}

// not keeps why nothing can be had in a folder.
func (t *Tree) not(dir string, err error) {
	why := "not known"
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		why = errno.Error()
	case err != nil:
		why = err.Error()
	}
	t.whys = append(t.whys, fmt.Sprintf("%s (%s)", dir, why))
}

// make makes a group with a fresh name in dir and returns its folder.
func (t *Tree) make(dir string) (string, error) {
	name := filepath.Join(dir, t.owner.name(t.number.Add(1)))
	return name, t.sys.mkdir(name)
}

// sweep removes what processes have left in dir that are gone.
func (t *Tree) sweep(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what cannot be read is left for the next time
	for _, n := range names {
		if o, ours := parseName(n); ours && o != t.owner && !t.sys.alive(o) {
			_ = t.sys.rmdir(filepath.Join(dir, n)) // refused while somebody is in it
		}
	}
}

// By returns how a limit of a controller would be held; empty when it cannot be.
func (t *Tree) By(c Controller) Kind {
	switch {
	case t.on[c]:
		return V2
	case t.single[c] != "":
		return V1
	}
	return ""
}

// Why says why groups cannot be had, for people; empty when nothing was refused.
func (t *Tree) Why() string {
	if len(t.whys) == 0 && t.unified == "" && len(t.single) == 0 {
		return "none is mounted"
	}
	return strings.Join(t.whys, ", ")
}

// Where returns the folders in which groups are made, sorted.
func (t *Tree) Where() []string {
	var dirs []string
	if t.unified != "" {
		dirs = append(dirs, t.unified)
	}
	for _, d := range t.single {
		dirs = append(dirs, d)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// remove removes a group, or keeps it for a later try: the kernel needs a moment
// to see that the last process of a group has ended.
func (t *Tree) remove(dir string) {
	if err := t.sys.rmdir(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, dir)
}

// retry tries again to remove what could not be removed, and returns what is left.
func (t *Tree) retry() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = slices.DeleteFunc(t.pending, func(dir string) bool {
		err := t.sys.rmdir(dir)
		return err == nil || errors.Is(err, fs.ErrNotExist)
	})
	return slices.Clone(t.pending)
}

// Close removes what is left of the groups and moves the caller back. It waits up
// to a second for processes that the kernel has not taken out yet. Groups must not
// be used any more.
func (t *Tree) Close() error {
	const patience, again = time.Second, 2 * time.Millisecond
	left := t.retry()
	if len(left) > 0 {
		// No event tells when a group of version 1 becomes empty to the kernel.
		ticker := time.NewTicker(again)
		defer ticker.Stop()
		end := time.After(patience)
	wait:
		for len(left) > 0 {
			select {
			case <-ticker.C:
				left = t.retry()
			case <-end:
				break wait
			}
		}
	}
	err := t.stepBack()
	if len(left) > 0 {
		err = errors.Join(err, &Error{Path: left[0], Err: errors.New("it could not be removed, because something is still in it")})
	}
	return err
}

// read returns a short file of a group; empty when it cannot be read.
func read(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return string(b)
}

// put writes a value to a file of a group. It makes none.
func put(dir, name, value string) error {
	at := filepath.Join(dir, name)
	f, err := os.OpenFile(at, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(value)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return &Error{Path: at, Err: plainest(err)}
	}
	return nil
}

// plainest takes the names of calls and files off an error, which ours has.
func plainest(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// writable opens a file for writing and does nothing with it.
func writable(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// has returns the controllers that the limits need.
func (l Limits) has() map[Controller]bool {
	return map[Controller]bool{Memory: l.Memory > 0, CPU: l.CPUs > 0, PIDs: l.PIDs > 0}
}
