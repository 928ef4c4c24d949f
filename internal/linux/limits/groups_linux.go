// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

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

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Groups makes the control groups of one host. The zero Groups looks for them when the
// first command with a limit comes. Its methods may be called concurrently.
//
// Looking takes some hundred microseconds, and about a millisecond where version 2 has
// controllers, because it tries to start a process in a group. It removes groups that
// dead processes left behind.
//
// In version 2 a group either contains processes or shares controllers out. Where this
// process is alone in a group that was delegated to it, such as a systemd scope with
// Delegate=yes, Groups therefore moves it into a new group below, and Close moves it
// back. Elsewhere it tries the groups above, and the limits of those that it passed
// over apply to every group that it makes.
type Groups struct {
	// Disabled makes Groups act as on a machine without control groups. Set it before
	// the first use.
	Disabled bool

	once sync.Once
	tree *tree
	next atomic.Uint32 // the first processor of the next command that gets an affinity
}

// find returns where groups can be made.
func (g *Groups) find() *tree {
	g.once.Do(func() {
		if g.Disabled {
			g.tree = new(tree)
			return
		}
		own, _ := safefile.ReadSystem("/proc/self/cgroup") // without it nothing is found, and why says so
		mounts, _ := safefile.ReadSystem("/proc/self/mountinfo")
		g.tree = find(system{
			own: string(own), mounts: string(mounts),
			mkdir: func(dir string) error { return syscall.Mkdir(dir, 0o755) },
			rmdir: syscall.Rmdir, enter: enter, alive: owner.alive,
		}, self())
	})
	return g.tree
}

// Close removes what is left of the groups and moves the caller back. It waits up to a
// second for processes that have not left their group yet. Do not use a group
// afterwards.
func (g *Groups) Close() error {
	g.once.Do(func() {})
	if g.tree == nil {
		return nil
	}
	return g.tree.close()
}

// Check makes a group with every limit that groups can enforce here and removes it. An
// error says why it cannot.
func (g *Groups) Check() error {
	t := g.find()
	made, err := t.newGroup(executor.Resources{Memory: executor.LeastMemory, CPUs: 1, PIDs: reapers})
	switch {
	case err != nil:
		return fmt.Errorf("no control group can be made: %w", err)
	case made == nil:
		return fmt.Errorf("no control group can be made: %s", t.why())
	}
	made.remove()
	return nil
}

// Where returns the directories in which groups are made, sorted.
func (g *Groups) Where() []string {
	t := g.find()
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

// Describe says what enforces each limit at the native level, such as "memory by
// cgroup-v2".
func (g *Groups) Describe() string {
	t := g.find()
	by := func(limit string, c controller, otherwise string) string {
		if k := t.by(c); k != "" {
			otherwise = k
		}
		return limit + " by " + otherwise
	}
	processes := executor.ByRlimit
	if hostfacts.SystemRoot() {
		processes = executor.ByWatch
	}
	return strings.Join([]string{
		by(executor.LimitMemory, memory, executor.ByWatch), by(executor.LimitCPUs, cpu, executor.ByAffinity),
		by(executor.LimitPIDs, pids, processes), executor.LimitDisk + " by " + executor.ByWatch,
		executor.LimitOutput + " by " + executor.ByWatch,
	}, ", ")
}

// tree is where groups can be made. The zero tree is nowhere.
type tree struct {
	sys    system
	owner  owner
	number atomic.Uint64

	unified string                // the directory for groups of version 2; empty for none
	on      map[controller]bool   // the controllers of those
	single  map[controller]string // the directories for groups of version 1
	above   executor.Resources    // the limits of groups of version 2 that were passed over
	stepped string                // where this process was moved by makeRoom; empty for nowhere
	whys    []string              // why groups cannot be made, by directory

	mu      sync.Mutex
	pending []string // groups that could not be removed yet
}

// system is the kernel, or a test that stands in for it.
type system struct {
	own, mounts string // /proc/self/cgroup and /proc/self/mountinfo
	mkdir       func(string) error
	rmdir       func(string) error
	enter       func(dir string) error // tries whether a process can be started in a group
	alive       func(owner) bool
}

// self returns this process as an owner.
func self() owner {
	o := owner{pid: os.Getpid()}
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) == nil {
		o.namespace = st.Ino
	}
	stat, _ := safefile.ReadSystem("/proc/self/stat") // where it cannot be read, 0 identifies as well
	o.started, _ = parseStarted(string(stat))
	return o
}

// alive returns whether an owner still runs, or cannot be seen from here.
func (o owner) alive() bool {
	if o.namespace != self().namespace {
		return true
	}
	stat, err := safefile.ReadSystem(fmt.Sprintf("/proc/%d/stat", o.pid))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	started, ok := parseStarted(string(stat))
	return !ok || started == o.started
}

// enter tries to start a program in a group. The program has no name, so the kernel
// rejects it after the new process has entered the group.
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

// find tries version 2 first, and version 1 for controllers that it lacks.
func find(sys system, o owner) *tree {
	t := &tree{sys: sys, owner: o, on: make(map[controller]bool), single: make(map[controller]string)}
	own, mounts := parseOwn(sys.own), parseMounts(sys.mounts)
	for _, h := range mounts {
		if h.by == executor.ByCgroupV2 && t.unified == "" {
			t.findUnified(h, h.directory(own[""]))
		}
	}
	for _, h := range mounts {
		for _, c := range controllers {
			if slices.Contains(h.controllers, string(c)) && t.by(c) == "" {
				t.findSingle(c, h.directory(own[c]))
			}
		}
	}
	return t
}

// findSingle tries a hierarchy of version 1.
func (t *tree) findSingle(c controller, dir string) {
	if dir == "" {
		return
	}
	t.sweep(dir)
	name, err := t.make(dir)
	if err == nil {
		var list *os.File
		if list, err = os.OpenFile(filepath.Join(name, "tasks"), os.O_WRONLY, 0); err == nil {
			_ = list.Close()
		}
		t.remove(name)
	}
	if err != nil {
		t.unusable(dir, err)
		return
	}
	t.single[c] = dir
}

// findUnified tries the own group of version 2 and those above it.
func (t *tree) findUnified(h hierarchy, own string) {
	if own == "" {
		return
	}
	var above executor.Resources
	for dir := own; ; dir = path.Dir(dir) {
		t.sweep(dir)
		on, err := t.tryUnified(dir, dir == own)
		if len(on) > 0 {
			t.unified, t.on, t.above = dir, on, above
			return
		}
		t.unusable(dir, err)
		if dir == path.Clean(h.at) {
			return
		}
		above = lower(above, limitsOf(dir))
	}
}

// limitsOf reads the limits of a group of version 2.
func limitsOf(dir string) executor.Resources {
	const most = 1 << 62
	memory, _ := parseCount(read(dir, "memory.max"))
	pids, _ := parseCount(read(dir, "pids.max"))
	return executor.Resources{
		Memory: int64(min(memory, most)), PIDs: int(min(pids, most)), CPUs: parseCPUMax(read(dir, "cpu.max")),
	}
}

// known returns the controllers in a space-separated list that limits need.
func known(list string) map[controller]bool {
	out := make(map[controller]bool)
	for word := range strings.FieldsSeq(list) {
		if c := controller(word); slices.Contains(controllers, c) {
			out[c] = true
		}
	}
	return out
}

// tryUnified makes a group in dir, enters it, and returns its controllers.
func (t *tree) tryUnified(dir string, own bool) (map[controller]bool, error) {
	offered := known(read(dir, "cgroup.controllers"))
	if len(offered) == 0 {
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
	return known(read(name, "cgroup.controllers")), nil
}

// shareOut makes dir share the offered controllers with the groups in it. It is an
// error when none is shared.
func (t *tree) shareOut(dir string, offered map[controller]bool, own bool) error {
	shared := known(read(dir, "cgroup.subtree_control"))
	var err error
	for _, c := range controllers {
		if shared[c] || !offered[c] {
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
		shared[c] = true
	}
	if len(shared) > 0 {
		return nil
	}
	return err
}

// makeRoom moves this process into a group below its own, if it is alone there.
func (t *tree) makeRoom(dir string) bool {
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
func (t *tree) stepBack() error {
	if t.stepped == "" {
		return nil
	}
	dir := path.Dir(t.stepped)
	for c := range t.on {
		_ = put(dir, "cgroup.subtree_control", "-"+string(c)) // a failure makes the next write fail
	}
	if err := put(dir, "cgroup.procs", fmt.Sprint(t.owner.pid)); err != nil {
		return err
	}
	t.remove(t.stepped)
	t.stepped = ""
	return nil
}

// unusable notes why groups cannot be made in a directory.
func (t *tree) unusable(dir string, err error) {
	why := "unknown"
	if err != nil {
		why = hostfacts.Reason(err)
	}
	t.whys = append(t.whys, fmt.Sprintf("%s (%s)", dir, why))
}

// make makes a group with a new name in dir and returns its directory.
func (t *tree) make(dir string) (string, error) {
	name := filepath.Join(dir, t.owner.name(t.number.Add(1)))
	if err := t.sys.mkdir(name); err != nil {
		return "", &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return name, nil
}

// sweep removes what dead processes left in dir.
func (t *tree) sweep(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what cannot be read now is swept another time
	for _, n := range names {
		if o, ours := parseName(n); ours && o != t.owner && !t.sys.alive(o) {
			_ = t.sys.rmdir(filepath.Join(dir, n)) // fails while a process is in it
		}
	}
}

// by returns the version that can enforce the limit of a controller, or "".
func (t *tree) by(c controller) string {
	switch {
	case t.on[c]:
		return executor.ByCgroupV2
	case t.single[c] != "":
		return executor.ByCgroupV1
	}
	return ""
}

// why says why groups cannot be made; empty when no directory was unusable.
func (t *tree) why() string {
	if len(t.whys) == 0 && t.unified == "" && len(t.single) == 0 {
		return "none is mounted"
	}
	return strings.Join(t.whys, ", ")
}

// remove removes a group, or keeps it for another attempt: the kernel needs a moment to
// see that the last process of a group has ended.
func (t *tree) remove(dir string) {
	if err := t.sys.rmdir(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, dir)
}

// retry tries again to remove what could not be removed, and returns what is left.
func (t *tree) retry() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = slices.DeleteFunc(t.pending, func(dir string) bool {
		err := t.sys.rmdir(dir)
		return err == nil || errors.Is(err, fs.ErrNotExist)
	})
	return slices.Clone(t.pending)
}

// close is [Groups.Close].
func (t *tree) close() error {
	const patience, again = time.Second, 2 * time.Millisecond
	end := time.Now().Add(patience)
	// The kernel sends no event when a group of version 1 becomes empty.
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	left := t.retry()
	for ; len(left) > 0 && time.Now().Before(end); left = t.retry() {
		<-ticker.C
	}
	err := t.stepBack()
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("control group %s was not removed: a process is still in it", left[0]))
	}
	return err
}

// read returns a short file of a group; empty when it cannot be read.
func read(dir, name string) string {
	b, err := safefile.ReadSystem(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return string(b)
}

// put writes a value to an existing file of a group.
func put(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
