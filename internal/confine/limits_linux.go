// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cgroup"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// groups is what a Host knows of control groups. It looks when the first command
// with a limit comes.
type groups struct {
	none bool // use none, as where none can be had; set before the first use
	once sync.Once
	tree *cgroup.Tree
	next atomic.Uint32 // which processors the next command gets
}

func (g *groups) find() *cgroup.Tree {
	g.once.Do(func() {
		if g.none {
			g.tree = new(cgroup.Tree)
			return
		}
		g.tree = cgroup.Find()
	})
	return g.tree
}

func (g *groups) close() error {
	g.once.Do(func() {})
	if g.tree == nil {
		return nil
	}
	return g.tree.Close()
}

// bounds holds the limits of one command, and says afterwards what it used.
type bounds struct {
	want  executor.Resources
	host  *groups
	group *cgroup.Group // nil without one; set by settle
	made  chan madeGroup
	held  []executor.Enforced
	level string
	watch *watch // nil where nothing is watched
	oom   atomic.Bool

	callerPeak int64 // what this process had at most when the command had begun

	mu    sync.Mutex
	ended string // the limit that the tree was ended for
}

type madeGroup struct {
	group *cgroup.Group
	err   error
}

// reapers is how many processes of ours are at the root of a command's tree.
const reapers = 1

// others is how many processes below the reaper are not the command's: bubblewrap
// has a monitor and a first process inside.
func (b *bounds) others() int {
	if b.level == plan.LevelBwrap {
		return 2
	}
	return 0
}

// bound begins to make what holds the limits of a request; settle waits for it.
func (h *Host) bound(r *executor.Spec) *bounds {
	b := &bounds{want: r.Resources, host: &h.groups}
	if b.want.Memory > 0 || b.want.CPUs > 0 || b.want.PIDs > 0 {
		b.made = make(chan madeGroup, 1)
		go b.makeGroup()
	}
	return b
}

// makeGroup makes a group for what groups can hold here.
func (b *bounds) makeGroup() {
	tree := b.host.find()
	l := cgroup.Limits{Memory: b.want.Memory, CPUs: b.want.CPUs, PIDs: b.want.PIDs}
	if tree.By(cgroup.Memory) == "" {
		l.Memory = 0
	}
	if tree.By(cgroup.CPU) == "" {
		l.CPUs = 0
	}
	if tree.By(cgroup.PIDs) == "" {
		l.PIDs = 0
	}
	if l.PIDs > 0 {
		l.PIDs += reapers
	}
	if l == (cgroup.Limits{}) {
		b.made <- madeGroup{}
		return
	}
	g, err := tree.New(l)
	b.made <- madeGroup{g, err}
}

// await returns when the group was made, or could not be.
func (b *bounds) await() error {
	if b.made == nil {
		return nil
	}
	m := <-b.made
	b.made = nil
	b.group = m.group
	if m.err != nil {
		b.group = nil
		return &sandbox.UnsupportedError{Need: "a control group for the limits", Have: m.err.Error(), Hint: "leave the limits out, or see sallyport doctor"}
	}
	return nil
}

// settle decides by what each limit is held and adds to the plan's script what that
// needs. writable are the folders that the limit on disk is about.
func (b *bounds) settle(p *plan.Plan, files *launch.Files, writable []string) error {
	if err := b.await(); err != nil {
		return err
	}
	b.level = p.Level
	var first, second []launch.Step
	if b.group != nil {
		files.Cgroup, files.Join = b.group.Folder(), b.group.Lists()
		for i, f := range files.Join {
			first = append(first, launch.Step{Op: launch.OpJoin, From: i + 1, Label: f.Name()})
		}
		if p.Level == plan.LevelBwrap {
			if err := b.group.AllowPIDs(b.want.PIDs + reapers + b.others()); err != nil {
				return &sandbox.UnsupportedError{Need: "a limit on processes", Have: err.Error(), Hint: hostfacts.SeeDoctor}
			}
		}
	}
	w := &watch{}
	if b.want.Memory > 0 {
		by := b.by(cgroup.Memory, executor.ByWatch)
		if by == executor.ByWatch {
			w.memory = b.want.Memory
		}
		b.hold(executor.LimitMemory, float64(b.want.Memory), by)
	}
	if b.want.CPUs > 0 {
		by := b.by(cgroup.CPU, executor.ByAffinity)
		if by == executor.ByAffinity {
			step, err := b.affinity()
			if err != nil {
				return err
			}
			second = append(second, step)
		}
		b.hold(executor.LimitCPUs, b.want.CPUs, by)
	}
	if b.want.PIDs > 0 {
		second = append(second, b.settlePIDs(p, w)...)
	}
	if b.want.Disk > 0 {
		d, err := newDiskWatch(b.want.Disk, writable)
		if err != nil {
			return err
		}
		if p.Level == plan.LevelNone {
			return &sandbox.UnsupportedError{
				Need: "a limit on disk", Have: "full access may write everywhere, so nothing tells what the command has written",
				Hint: "use a sandbox that names its writable folders, or leave the limit out",
			}
		}
		w.disk = d
		b.hold(executor.LimitDisk, float64(b.want.Disk), executor.ByWatch)
	}
	if w.memory > 0 || w.pids > 0 || w.disk != nil {
		b.watch = w
	}
	insertSteps(&p.Script, first, second)
	return nil
}

// settlePIDs decides about the limit on processes. A resource limit counts per user
// in a user namespace, which the native level makes anew for each command; the
// kernel does not apply it to the system's root.
func (b *bounds) settlePIDs(p *plan.Plan, w *watch) []launch.Step {
	otherwise := executor.ByWatch
	if p.Level == plan.LevelNative && !hostfacts.SystemRoot() {
		otherwise = executor.ByRlimit
	}
	by := b.by(cgroup.PIDs, otherwise)
	b.hold(executor.LimitPIDs, float64(b.want.PIDs), by)
	switch by {
	case executor.ByWatch:
		w.pids = b.want.PIDs + b.others()
	case executor.ByRlimit:
		n := uint64(b.want.PIDs + reapers)
		var now unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NPROC, &now) == nil {
			n = min(n, now.Max) // a hard limit can only be lowered
		}
		return []launch.Step{{Op: launch.OpLimit, Resource: unix.RLIMIT_NPROC, Soft: n, Hard: n, Label: "processes, with the reaper"}}
	}
	return nil
}

// by returns what holds the limit of a controller: the group, or what there is
// otherwise.
func (b *bounds) by(c cgroup.Controller, otherwise string) string {
	if b.group == nil {
		return otherwise
	}
	switch b.group.By(c) {
	case cgroup.V2:
		return executor.ByCgroupV2
	case cgroup.V1:
		return executor.ByCgroupV1
	}
	return otherwise
}

func (b *bounds) hold(limit string, value float64, by string) {
	b.held = append(b.held, executor.Enforced{Limit: limit, Value: value, By: by})
}

// affinity keeps the command to as many processors as it may use, rounded up: the
// next ones of those that this process may use, so that commands spread.
func (b *bounds) affinity() (launch.Step, error) {
	var own, mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return launch.Step{}, &sandbox.UnsupportedError{Need: "a limit on processors", Have: "the kernel does not say which there are: " + err.Error(), Hint: "leave it out"}
	}
	var all []int
	const most = len(own) * 64
	for i := range most {
		if own.IsSet(i) {
			all = append(all, i)
		}
	}
	n := min(int(math.Ceil(b.want.CPUs)), len(all))
	from := int(b.host.next.Add(uint32(n)))
	data := make([]byte, most/8)
	for i := range n {
		c := all[(from+i)%len(all)]
		mask.Set(c)
		data[c/8] |= 1 << (c % 8)
	}
	data = slices.Clip(data[:len(strings.TrimRight(string(data), "\x00"))])
	return launch.Step{Op: launch.OpAffinity, Data: data, Label: fmt.Sprintf("%d processors", mask.Count())}, nil
}

// insertSteps puts steps at the beginning of both tasks of a script.
func insertSteps(s *launch.Script, first, second []launch.Step) {
	at := slices.IndexFunc(s.Steps, func(st launch.Step) bool { return st.Op == launch.OpStartCommand })
	if at < 0 || len(first)+len(second) == 0 {
		return
	}
	s.Steps = slices.Concat(first, s.Steps[:at+1], second, s.Steps[at+1:])
}

// explain tells a group that could not be entered from a level that cannot be had.
func (b *bounds) explain(err error) error {
	var step *launch.StepError
	var enter *launch.CgroupError
	if errors.As(err, &enter) || errors.As(err, &step) && step.Index >= 0 && step.Step.Op == launch.OpJoin {
		return &sandbox.UnsupportedError{
			Need: "a control group for the limits", Have: "the kernel did not let the command into the one that was made: " + err.Error(),
			Hint: "leave the limits out, or see sallyport doctor",
		}
	}
	return err
}

// release lets everything go when nothing was started.
func (b *bounds) release() {
	_ = b.await() // what was wrong was told, or does not matter any more
	if b.group != nil {
		b.group.Remove()
	}
}

// attend begins to watch a command that has started.
func (b *bounds) attend(c Child, own *child) {
	b.callerPeak = ownPeak()
	if b.group != nil {
		b.group.Started()
		b.group.Watch(func() {
			b.oom.Store(true)
			b.end(executor.LimitMemory, c, own)
		})
	}
	if b.watch != nil {
		b.watch.begin(own.PID(), func(limit string) { b.end(limit, c, own) })
	}
}

// end ends the tree for a limit. The reaper stays, so that the command's own end
// can still be told.
func (b *bounds) end(limit string, c Child, own *child) {
	b.mu.Lock()
	if b.ended == "" {
		b.ended = limit
	}
	b.mu.Unlock()
	_ = c.Signal(unix.SIGKILL, true)
	if !own.own { // else the kernel does it in one go
		_ = own.hunt() // WaitAll tells when it fails
	}
}

// finish reads what the tree used and met, when it has ended.
func (b *bounds) finish(proc *launch.Process, after *Aftermath) {
	if b == nil {
		return
	}
	var seen seen
	if b.watch != nil {
		seen = b.watch.finish()
	}
	var g cgroup.Usage
	if b.group != nil {
		b.group.Unwatch()
		g = b.group.Read()
		proc.OnCollected(b.group.Remove)
	}
	b.mu.Lock()
	after.Limit = b.ended
	b.mu.Unlock()
	if after.Limit == "" && (g.OOMKills > 0 || b.oom.Load()) {
		after.Limit = executor.LimitMemory
	}
	for i := range b.held {
		switch l := &b.held[i]; l.Limit {
		case executor.LimitMemory:
			l.Hit = g.OOMKills > 0 || b.oom.Load() || after.Limit == l.Limit
		case executor.LimitPIDs:
			l.Hit = g.Refused > 0 || after.Limit == l.Limit
			if l.Hit && after.Limit == "" {
				after.Limit = l.Limit
			}
		case executor.LimitDisk:
			l.Hit = seen.disk || after.Limit == l.Limit
		}
	}
	after.Limits = b.held
	after.Usage = b.usage(proc.Usage(), g, seen)
}
