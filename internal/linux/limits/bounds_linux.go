// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

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
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// reapers is the number of this program's processes at the root of a process tree.
const reapers = 1

// noLimits is the hint where the limits cannot be enforced.
const noLimits = "leave the limits out, or see sallyport doctor"

// Bounds enforces the limits of one command and measures its process tree, also when
// there is no limit. Call the methods in this order, from one goroutine at a time: At,
// Files, Watch when the command has started, Finish when its tree has ended, and in every case
// Release.
type Bounds struct {
	want   executor.Resources
	groups *Groups
	group  func() (*group, error) // waits until the group was made; nil, nil without one

	level      string
	held       []executor.Enforced
	watch      watch
	callerPeak int64                  // this process's peak memory when the command had started
	exceeded   atomic.Pointer[string] // the limit for which the tree was killed
}

// New starts to make the control group for the limits and returns at once.
func New(groups *Groups, want executor.Resources) *Bounds {
	b := &Bounds{want: want, groups: groups}
	b.group = sync.OnceValues(b.newGroup)
	if b.needsGroup() {
		go func() { _, _ = b.group() }() // At returns the error
	}
	return b
}

// needsGroup returns whether a control group may enforce one of the limits.
func (b *Bounds) needsGroup() bool { return b.want.Memory > 0 || b.want.CPUs > 0 || b.want.PIDs > 0 }

func (b *Bounds) newGroup() (*group, error) {
	if !b.needsGroup() {
		return nil, nil
	}
	r := b.want
	if r.PIDs > 0 {
		r.PIDs += reapers
	}
	return b.groups.find().newGroup(r)
}

// others returns how many processes below the reaper are not the command's: bubblewrap
// has a monitor and an init process.
func (b *Bounds) others() int {
	if b.level == plan.LevelBwrap {
		return 2
	}
	return 0
}

// At decides what enforces each limit at a sandbox level and returns what the script of
// the launch begins with. The limit on disk is about the writable directories, from
// this moment on; shared says that the user namespace is that of other commands as well. At waits for
// the control group. It may be called again for another level. A nil Bounds has no limits.
func (b *Bounds) At(level string, writable []string, shared bool) (plan.Entry, error) {
	var e plan.Entry
	if b == nil {
		return e, nil
	}
	g, err := b.group()
	if err != nil {
		return e, &sandbox.UnsupportedError{Need: "a control group for the limits", Have: err.Error(),
			Hint: noLimits}
	}
	b.level, b.held, b.watch = level, nil, watch{}
	if g != nil {
		for i, f := range g.lists {
			e.Reaper = append(e.Reaper, launch.Step{Op: launch.OpJoin, From: i + 1, Label: f.Name()})
		}
		if b.want.PIDs > 0 {
			if err := g.allowPIDs(b.want.PIDs + reapers + b.others()); err != nil {
				return e, &sandbox.UnsupportedError{Need: "a limit on processes", Have: err.Error(),
					Hint: hostfacts.SeeDoctor}
			}
		}
	}
	if b.want.Memory > 0 && b.hold(executor.LimitMemory, float64(b.want.Memory), g.by(memory),
		executor.ByWatch) {
		b.watch.memory = b.want.Memory
	}
	if b.want.CPUs > 0 {
		b.hold(executor.LimitCPUs, b.want.CPUs, g.by(cpu), executor.ByAffinity)
		// beside a group, too: programs count the processors that they may use, and see no quota
		step, err := b.affinity()
		if err != nil {
			return e, err
		}
		e.Command = append(e.Command, step)
	}
	if b.want.PIDs > 0 {
		e.Command = append(e.Command, b.holdPIDs(g, shared)...)
	}
	if b.want.Disk > 0 {
		if level == plan.LevelNone {
			return e, &sandbox.UnsupportedError{
				Need: "a limit on disk",
				Have: "with full access the command may write everywhere, so its writes cannot be measured",
				Hint: "use a sandbox that names its writable directories, or leave the limit out",
			}
		}
		if b.watch.disk, err = newDiskWatch(b.want.Disk, writable); err != nil {
			return e, err
		}
		b.hold(executor.LimitDisk, float64(b.want.Disk), "", executor.ByWatch)
	}
	return e, nil
}

// Files adds the files that the steps of At name. They are valid until Watch or Release.
func (b *Bounds) Files(files *launch.Files) {
	if g, _ := b.group(); g != nil {
		files.Cgroup, files.Join = g.dir, g.lists
	}
}

// hold notes what enforces a limit: the control group, or otherwise. It returns whether
// it is the latter.
func (b *Bounds) hold(limit string, value float64, group, otherwise string) bool {
	by := group
	if by == "" {
		by = otherwise
	}
	b.held = append(b.held, executor.Enforced{Limit: limit, Value: value, By: by})
	return group == ""
}

// holdPIDs holds the limit on processes. A resource limit counts per user in a user
// namespace. Only the native level makes a new one for each command, unless that is shared, and the
// kernel does not apply resource limits to the system's root user.
func (b *Bounds) holdPIDs(g *group, shared bool) []launch.Step {
	watched := b.level != plan.LevelNative || shared || hostfacts.SystemRoot()
	otherwise := executor.ByRlimit
	if watched {
		otherwise = executor.ByWatch
	}
	switch {
	case !b.hold(executor.LimitPIDs, float64(b.want.PIDs), g.by(pids), otherwise):
		return nil
	case watched:
		b.watch.pids = b.want.PIDs + b.others()
		return nil
	}
	n := uint64(b.want.PIDs + reapers)
	l := lowered(plan.Limit{Resource: unix.RLIMIT_NPROC, Soft: n, Hard: n})
	return []launch.Step{{Op: launch.OpLimit, Resource: l.Resource, Soft: l.Soft, Hard: l.Hard,
		Label: "processes, with the reaper"}}
}

// affinity restricts the command to as many processors as it may use, rounded up: the
// next ones of those that this process may use, so that commands spread.
func (b *Bounds) affinity() (launch.Step, error) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return launch.Step{}, &sandbox.UnsupportedError{
			Need: "a limit on processors", Have: "the kernel does not list them: " + err.Error(),
			Hint: "leave it out",
		}
	}
	const most = len(own) * 64
	var all []int
	for i := range most {
		if own.IsSet(i) {
			all = append(all, i)
		}
	}
	n := min(int(math.Ceil(b.want.CPUs)), len(all))
	from := int(b.groups.next.Add(uint32(n)))
	mask := make([]byte, most/8)
	for i := range n {
		c := all[(from+i)%len(all)]
		mask[c/8] |= 1 << (c % 8)
	}
	mask = slices.Clip(mask[:len(strings.TrimRight(string(mask), "\x00"))])
	return launch.Step{Op: launch.OpAffinity, Data: mask, Label: fmt.Sprintf("%d processors", n)}, nil
}

// Explain returns err, or a *sandbox.UnsupportedError for the error of a launch that
// could not enter the control group.
func (b *Bounds) Explain(err error) error {
	var step *launch.StepError
	var enter *launch.CgroupError
	if errors.As(err, &enter) || errors.As(err, &step) && step.Index >= 0 && step.Step.Op == launch.OpJoin {
		return &sandbox.UnsupportedError{
			Need: "a control group for the limits",
			Have: "the command could not enter the one that was made: " + err.Error(), Hint: noLimits,
		}
	}
	return err
}

// Watch starts to watch the tree of the command that was started. processes returns the
// IDs of the processes below the reaper. When a limit is exceeded, kill is called from
// another goroutine; it must kill those processes and leave the reaper alone, which
// reports how the command ended. Both are not called after Finish.
func (b *Bounds) Watch(processes func() []int, kill func()) {
	b.callerPeak = ownPeak()
	exceed := func(limit string) {
		b.exceeded.CompareAndSwap(nil, &limit)
		kill()
	}
	if g, _ := b.group(); g != nil {
		g.started()
		g.watch(func() { exceed(executor.LimitMemory) })
	}
	b.watch.begin(processes, exceed)
}

// Finish returns what enforced each limit, the limit that ended the tree ("" for none)
// and what the tree used, of which the reaper has measured used. The tree must have
// ended.
func (b *Bounds) Finish(used launch.Usage) (held []executor.Enforced, limit string, _ executor.Usage) {
	seen := b.watch.finish(used.Written)
	g, _ := b.group()
	if g != nil {
		g.unwatch()
	}
	count := g.read()
	if p := b.exceeded.Load(); p != nil {
		limit = *p
	} else if count.oomKills > 0 {
		limit = executor.LimitMemory
	}
	reached := map[string]bool{
		executor.LimitMemory: count.oomKills > 0, executor.LimitPIDs: count.refused > 0,
		executor.LimitDisk: seen.disk,
	}
	for i := range b.held {
		l := &b.held[i]
		l.Hit = reached[l.Limit] || limit == l.Limit
		if limit == "" && l.Hit && l.Limit == executor.LimitPIDs {
			limit = l.Limit
		}
	}
	return b.held, limit, b.usage(used, g.by(memory), count, seen)
}

// Release removes the control group, as soon as no process is in it. It may be called
// at any time after New, and more than once.
func (b *Bounds) Release() {
	if g, _ := b.group(); g != nil {
		g.remove()
	}
}
