// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// fake is a directory that stands in for the hierarchy of version 2. It has the files of the
// kernel and two of its rules: a group gets the controllers that the one above shares out,
// and rmdir removes a group without processes or groups in it.
type fake struct {
	t     *testing.T
	root  string
	noDir []string // directories in which no group can be made
	noGo  []string // directories whose groups cannot be entered
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, root: t.TempDir()}
	f.files(f.root, "cpu io memory pids")
	return f
}

func (f *fake) write(dir, name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// files creates the files of a group.
func (f *fake) files(dir, controllers string) {
	f.write(dir, "cgroup.controllers", controllers+"\n")
	for name, text := range map[string]string{"cgroup.subtree_control": "", "cgroup.procs": "",
		"cpu.stat": "usage_usec 3000\nuser_usec 2000\nsystem_usec 1000\n"} {
		f.write(dir, name, text)
	}
	of := map[string]map[string]string{
		"memory": {"memory.max": "max\n", "memory.swap.max": "max\n", "memory.oom.group": "0\n", "memory.peak": "4096\n", "memory.events": "max 1\noom_kill 2\n"},
		"pids":   {"pids.max": "max\n", "pids.peak": "3\n", "pids.events": "max 4\n"},
		"cpu":    {"cpu.max": "max 100000\n"},
	}
	for c := range strings.FieldsSeq(controllers) {
		for name, text := range of[c] {
			f.write(dir, name, text)
		}
	}
}

// group creates a group that existed before.
func (f *fake) group(path, controllers string) string {
	dir := filepath.Join(f.root, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	f.files(dir, controllers)
	return dir
}

func (f *fake) system(own string) system {
	return system{
		own: "0::" + own + "\n", mounts: "32 24 0:28 / " + f.root + " rw - cgroup2 cgroup2 rw\n",
		mkdir: func(dir string) error {
			above := filepath.Dir(dir)
			if slices.Contains(f.noDir, above) {
				return syscall.EACCES
			}
			if err := os.Mkdir(dir, 0o755); err != nil {
				return err
			}
			// A write replaces the content of this file, while the kernel adds to it. Tests
			// that need several controllers share them out beforehand.
			f.files(dir, strings.ReplaceAll(read(above, "cgroup.subtree_control"), "+", ""))
			return nil
		},
		rmdir: func(dir string) error {
			entries, err := os.ReadDir(dir)
			if err != nil {
				return syscall.ENOENT
			}
			for _, e := range entries {
				if e.IsDir() {
					return syscall.EBUSY
				}
			}
			if strings.TrimSpace(read(dir, "cgroup.procs")) != "" {
				return syscall.EBUSY
			}
			return os.RemoveAll(dir)
		},
		enter: func(dir string) error {
			if slices.Contains(f.noGo, filepath.Dir(dir)) {
				return syscall.EACCES
			}
			return nil
		},
		alive: func(o owner) bool { return o.pid != 666 },
	}
}

var me = owner{namespace: 1, pid: 77, started: 5}

func TestUnified(t *testing.T) {
	f := newFake(t)
	own := f.group("user/scope", "cpu memory pids")
	f.write(own, "cgroup.subtree_control", "cpu memory pids\n")
	tree := find(f.system("/user/scope"), me)
	for _, c := range controllers {
		if tree.by(c) != executor.ByCgroupV2 {
			t.Errorf("%s by %q: %s", c, tree.by(c), tree.why())
		}
	}
	g, err := tree.newGroup(executor.Resources{Memory: 64 << 20, CPUs: 1.5, PIDs: 21})
	if err != nil {
		t.Fatal(err)
	}
	dir := g.unified
	if filepath.Dir(dir) != own || g.dir == nil || len(g.lists) != 0 || g.by(memory) != executor.ByCgroupV2 {
		t.Errorf("in %s, %v %v", dir, g.dir, g.lists)
	}
	got := make(map[string]string)
	for _, name := range []string{"memory.max", "memory.swap.max", "memory.oom.group",
		"pids.max", "cpu.max"} {
		got[name] = read(dir, name)
	}
	// A write does not truncate a plain file.
	for name, first := range map[string]string{"memory.max": "67108864", "memory.swap.max": "0",
		"memory.oom.group": "1", "pids.max": "21", "cpu.max": "150000 100000"} {
		if !strings.HasPrefix(got[name], first) {
			t.Errorf("%s is %q, want %q", name, got[name], first)
		}
	}
	if err := g.allowPIDs(30); err != nil || !strings.HasPrefix(read(dir, "pids.max"), "30") {
		t.Errorf("%q, %v", read(dir, "pids.max"), err)
	}
	if got, want := g.read(), (counted{cpu: true, user: 2e6, system: 1e6, peak: 4096, tasks: 3, oomKills: 2,
		refused: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	g.watch(func() { t.Error("nothing is watched in version 2") })
	// The kernel needs a moment to see that a group is empty.
	f.write(dir, "cgroup.procs", "123\n")
	g.remove()
	if _, err := os.Stat(dir); err != nil {
		t.Fatal("a group that is not empty was removed")
	}
	f.write(dir, "cgroup.procs", "")
	if err := tree.close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(own, namePrefix+"*")); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
}

// TestAbove checks that unusable groups are passed over, and their limits apply.
func TestAbove(t *testing.T) {
	f := newFake(t)
	app := f.group("app", "memory pids")
	f.write(app, "cgroup.subtree_control", "memory pids\n")
	scope := f.group("app/scope", "memory pids")
	f.write(scope, "memory.max", "1000000\n")
	f.write(scope, "pids.max", "9\n")
	f.noDir = []string{scope}
	tree := find(f.system("/app/scope"), me)
	if tree.unified != app || tree.by(memory) != executor.ByCgroupV2 || tree.by(cpu) != "" ||
		!strings.Contains(tree.why(), "permission denied") {
		t.Fatalf("in %q: %s", tree.unified, tree.why())
	}
	if tree.above.Memory != 1000000 || tree.above.PIDs != 9 {
		t.Errorf("above are %+v", tree.above)
	}
	g, err := tree.newGroup(executor.Resources{Memory: 5 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if m, p := read(g.unified, "memory.max"), read(g.unified, "pids.max"); !strings.HasPrefix(m, "1000000") ||
		!strings.HasPrefix(p, "9") {
		t.Errorf("memory %q, pids %q", m, p)
	}
	g.remove()
	if g, err := tree.newGroup(executor.Resources{CPUs: 1, Disk: 1}); g != nil || err != nil {
		t.Errorf("a group for a controller that is not available: %+v, %v", g, err)
	}
	f.noGo = []string{app}
	if tree := find(f.system("/app/scope"), me); tree.unified == app {
		t.Error("used groups that cannot be entered")
	}
	if tree := find(f.system("/elsewhere/gone"), me); tree.by(memory) != "" || tree.why() == "" {
		t.Errorf("in %q: %s", tree.unified, tree.why())
	}
	if tree := find(system{}, me); tree.why() != "none is mounted" || tree.close() != nil {
		t.Errorf("%q", tree.why())
	}
}

// TestSweep checks that only groups of dead processes are removed.
func TestSweep(t *testing.T) {
	f := newFake(t)
	f.write(f.root, "cgroup.subtree_control", "memory\n")
	dead := owner{namespace: 1, pid: 666, started: 9}
	busy := f.group(dead.name(2), "memory")
	f.write(busy, "cgroup.procs", "5\n")
	for _, name := range []string{dead.name(1), owner{namespace: 1, pid: 8, started: 9}.name(1), me.name(900),
		"sallyport-other", "other"} {
		f.group(name, "memory")
	}
	tree := find(f.system("/"), me)
	left, err := filepath.Glob(filepath.Join(f.root, "*[a-z0-9]"))
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, l := range left {
		if st, err := os.Stat(l); err == nil && st.IsDir() {
			dirs = append(dirs, filepath.Base(l))
		}
	}
	want := []string{"other", "sallyport-1-666-9-2", "sallyport-1-77-5-900", "sallyport-1-8-9-1",
		"sallyport-other"}
	if diff := cmp.Diff(want, dirs); diff != "" {
		t.Error(diff)
	}
	if err := tree.close(); err != nil {
		t.Error(err)
	}
}

// TestMakeRoom moves a process that is alone in its group into one below, and back.
func TestMakeRoom(t *testing.T) {
	f := newFake(t)
	own := f.group("scope", "memory")
	f.write(own, "cgroup.procs", "77\n")
	tree := &tree{sys: f.system("/scope"), owner: me, on: map[controller]bool{memory: true}}
	if !tree.makeRoom(own) || filepath.Dir(tree.stepped) != own ||
		read(tree.stepped, "cgroup.procs") != "77" {
		t.Fatalf("stepped to %q", tree.stepped)
	}
	f.write(tree.stepped, "cgroup.procs", "") // as the kernel does
	if err := tree.stepBack(); err != nil || tree.stepped != "" {
		t.Errorf("%v, %q", err, tree.stepped)
	}
	f.write(own, "cgroup.procs", "77\n78\n")
	if tree.makeRoom(own) {
		t.Error("made room in a group with other processes")
	}
}

// realGroups finds the groups that root can make on this machine.
func realGroups(t *testing.T) (*Groups, *tree) {
	t.Helper()
	testenv.NeedRoot(t)
	g := new(Groups)
	if len(g.Where()) == 0 {
		testenv.Lack(t, testenv.Cgroups, "no groups can be made: "+g.tree.why())
	}
	return g, g.tree
}

// TestKernel makes groups with every available limit, and removes them.
func TestKernel(t *testing.T) {
	groups, tree := realGroups(t)
	dead := owner{namespace: self().namespace, pid: 1 << 21, started: 1} // above every process id here
	var old []string
	for _, dir := range groups.Where() {
		name := filepath.Join(dir, dead.name(1))
		if err := syscall.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		old = append(old, name)
	}
	l := executor.Resources{Memory: 64 << 20, CPUs: 0.5, PIDs: 5}
	seen := make(map[string]bool)
	for range 3 {
		g, err := tree.newGroup(l)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range g.made {
			if seen[dir] {
				t.Errorf("%s was used before", dir)
			}
			seen[dir] = true
		}
		called := make(chan struct{}, 1)
		g.watch(func() { called <- struct{}{} })
		if u := g.read(); u.oomKills != 0 || u.refused != 0 {
			t.Errorf("%+v", u)
		}
		g.remove()
		g.remove()
		if len(called) != 0 {
			t.Error("the end was reported as an exceeded memory limit")
		}
	}
	if err := groups.Close(); err != nil {
		t.Error(err)
	}
	if err := groups.Check(); err != nil {
		t.Error(err)
	}
	next := new(Groups)
	next.find()
	for dir := range seen {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
	for _, dir := range old {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s, of a dead process, is still there", dir)
		}
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// TestLateWatch exceeds the memory limit before the watch begins: the kernel kills one
// process, and the watch reports it all the same.
func TestLateWatch(t *testing.T) {
	_, tree := realGroups(t)
	if tree.by(memory) != executor.ByCgroupV1 {
		return // version 2 kills the whole group
	}
	g, err := tree.newGroup(executor.Resources{Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		g.remove()
		if err := tree.close(); err != nil {
			t.Error(err)
		}
	}()
	// The memory is allocated by a system call that reads into it.
	output, err := exec.Command(testenv.NeedProgram(t, "sh"), "-c",
		`echo $$ >"$1" && exec dd if=/dev/zero of=/dev/null bs=400M count=1`, "sh",
		filepath.Join(g.dirs[memory], "tasks")).CombinedOutput()
	if err == nil || err.Error() != "signal: killed" {
		t.Fatalf("%v, %s", err, output)
	}
	called := make(chan struct{})
	g.watch(func() { close(called) })
	select {
	case <-called:
	case <-time.After(time.Minute):
		t.Error("the watch reported nothing")
	}
	if u := g.read(); u.oomKills != 1 {
		t.Errorf("%+v", u)
	}
}

// TestEnter distinguishes a group from a plain directory.
func TestEnter(t *testing.T) {
	if err := enter(t.TempDir()); err == nil {
		t.Error("a plain directory was entered")
	}
	testenv.NeedRoot(t)
	dir := fmt.Sprintf("/sys/fs/cgroup/unified/%s", self().name(1))
	if err := syscall.Mkdir(dir, 0o755); err != nil {
		testenv.Lack(t, testenv.Cgroups, err.Error())
	}
	defer syscall.Rmdir(dir) //nolint:errcheck // nothing is in it
	if err := enter(dir); err != nil {
		t.Error(err)
	}
}

func TestAlive(t *testing.T) {
	o := self()
	if o.namespace == 0 || o.started == 0 || !o.alive() {
		t.Errorf("%+v", o)
	}
	o.started++
	if o.alive() {
		t.Error("another process with the same number")
	}
	o = owner{namespace: self().namespace + 1, pid: 1}
	if !o.alive() {
		t.Error("a process that cannot be seen was taken for dead")
	}
}
