// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
)

// A Total enforces limits of a shared sandbox as a whole, over the trees of all its commands, by watching
// them, and that on processors by the set of these that all commands have. A nil Total has no limits.
type Total struct {
	want   executor.Resources
	places []string
	step   []launch.Step // that each command performs

	mu    sync.Mutex
	watch *watch
}

// NewTotal returns a Total. The limit on disk is about places, from this moment on.
func NewTotal(groups *Groups, want executor.Resources, places []string) (*Total, error) {
	if want == (executor.Resources{}) {
		return nil, nil
	}
	if err := want.Check(); err != nil {
		return nil, err
	}
	t := &Total{want: want, places: places}
	if want.CPUs > 0 {
		b := &Bounds{want: want, groups: groups}
		step, err := b.affinity()
		if err != nil {
			return nil, err
		}
		t.step = []launch.Step{step}
	}
	return t, nil
}

// Entry returns e with what a command of the sandbox begins with.
func (t *Total) Entry(e plan.Entry) plan.Entry {
	if t != nil {
		e.Command = append(e.Command, t.step...)
	}
	return e
}

// Watch starts to watch. processes returns the IDs of all processes and is called once in a measurement; when
// that has found a limit exceeded, kill is called and kills these, and watching goes on. Both are called from
// another goroutine, one call at a time.
func (t *Total) Watch(processes func() []int, kill func(executor.Enforced)) error {
	if t == nil {
		return nil
	}
	w := &watch{memory: t.want.Memory, pids: t.want.PIDs}
	if t.want.Disk > 0 {
		var err error
		if w.disk, err = newDiskWatch(t.want.Disk, t.places); err != nil {
			return err
		}
	}
	t.begin(w, nil, processes, kill)
	return nil
}

// begin begins a watch in the place of the last one, unless that has ended meanwhile. After a limit was
// exceeded the same goes on: what fills the disk stays.
func (t *Total) begin(w, last *watch, processes func() []int, kill func(executor.Enforced)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watch != last {
		return
	}
	t.watch = w
	values := map[string]float64{executor.LimitMemory: float64(w.memory), executor.LimitPIDs: float64(w.pids),
		executor.LimitDisk: float64(t.want.Disk)}
	w.begin(processes, func(limit string) {
		kill(executor.Enforced{Limit: limit, Value: values[limit], By: executor.ByWatch, Hit: true})
		t.begin(&watch{memory: w.memory, pids: w.pids, disk: w.disk, files: w.files}, w, processes, kill)
	})
}

// Close ends watching. The nil Total does nothing.
func (t *Total) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	w := t.watch
	t.watch = nil
	t.mu.Unlock()
	if w != nil && w.over != nil {
		close(w.over)
		w.wg.Wait()
	}
}
