// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
)

const (
	// readyTime is how long a task waits for the next command of a conversation.
	readyTime = 30 * time.Second
	// maxReady is how many sandboxes of a Host have such a task, those that were used last: each takes about as
	// much memory as an open sandbox.
	maxReady = 4
)

// A ready task waits in a shared sandbox for the next command, with the mounts of the last one.
type ready struct {
	in   *Shared
	kind readyKind
	root *root

	made  chan struct{}     // closed when the rest is there
	task  *launch.Preforked // may be nil
	timer *time.Timer       // drops it
}

// readyTasks are those of a Host.
type readyTasks struct {
	mu     sync.Mutex
	closed bool
	tasks  []*ready // the latest last; one for each sandbox
	making sync.WaitGroup
}

// A readyKind is what commands have in common that one task may wait for. It only tells early what the
// launch tells late.
type readyKind struct {
	unobserved bool
	openings   string
}

func readyFor(spec *executor.Spec) readyKind {
	return readyKind{spec.NoObserver, strings.Join(slices.Sorted(slices.Values(spec.Allow)), " ")}
}

// prefork starts to make the namespaces of a command, with mounts to begin with or nil.
func (s *Shared) prefork(spec *executor.Spec, likely *root) *launch.Preforked {
	h := s.host
	from, first := launch.Files{Enter: s.enter(likely), Trees: s.parts.Trees}, plan.First(h.Facts())
	if likely != nil {
		h.mu.Lock()
		unseen := spec.NoObserver || h.unobserved != ""
		h.mu.Unlock()
		var filter launch.Filter // of a command that asks no supervisor
		if unseen {
			filter, _ = h.filter(plan.LevelNative, spec, unobserved) // the plan tells the error
		}
		first = plan.FirstInside(h.Facts(), spec, s.parts.PIDs, filter, !likely.holds.Load())
		from.Hold = []*os.File{likely.layers.Hold()}
		if own, err := h.onDisk(); err == nil {
			from.Hold = append(from.Hold, own.keeper.Lock())
		}
	}
	return h.launcher.Prefork(plan.Inside(s.parts.PIDs), first, from)
}

// next is of a command what the one that waits for the next is made from.
func next(spec *executor.Spec) *executor.Spec {
	return &executor.Spec{
		Policy: spec.Policy, Allow: slices.Clone(spec.Allow), NoObserver: spec.NoObserver, TTY: spec.TTY, Publish: slices.Clone(spec.Publish),
		Resources: spec.Resources,
	}
}

// makeReady has a task wait, in the background, for a command like this one, unless one waits already.
func (s *Shared) makeReady(spec *executor.Spec) {
	if !preforked(spec) || !plan.Waits(spec, s.parts.PIDs) {
		return
	}
	likely := s.likely()
	if likely == nil || likely.holds.Load() {
		s.release(likely)
		return
	}
	all := &s.host.ready
	r := &ready{in: s, kind: readyFor(spec), root: likely, made: make(chan struct{})}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed || s.closing.Load() || s.gone() || slices.ContainsFunc(all.tasks, func(o *ready) bool { return o.in == s }) {
		s.release(likely)
		return
	}
	all.tasks = append(all.tasks, r)
	all.making.Go(func() {
		r.task = s.prefork(spec, likely)
		r.timer = time.AfterFunc(readyTime, func() { all.drop(r) })
		close(r.made)
		all.shorten()
	})
}

// takeReady returns the task that waits for such a command, with the mounts that it has; nil if there is none. One
// for others waits on.
func (s *Shared) takeReady(spec *executor.Spec) (*launch.Preforked, *root) {
	if !plan.Waits(spec, s.parts.PIDs) {
		return nil, nil
	}
	kind := readyFor(spec)
	r := s.host.ready.take(func(o *ready) bool { return o.in == s && o.kind == kind })
	if r == nil {
		return nil, nil
	}
	<-r.made
	if r.task == nil || !s.latest(r.root) {
		r.end()
		return nil, nil
	}
	r.timer.Stop()
	return r.task, r.root
}

// latest reports whether these mounts were used last.
func (s *Shared) latest(r *root) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.roots) > 0 && s.roots[0] == r
}

// take removes the first one that is meant; nil if there is none.
func (t *readyTasks) take(meant func(*ready) bool) *ready {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.tasks, meant)
	if i < 0 {
		return nil
	}
	r := t.tasks[i]
	t.tasks = slices.Delete(t.tasks, i, i+1)
	return r
}

// drop ends a task, if it waits still.
func (t *readyTasks) drop(r *ready) {
	r.in.ending.Lock() // leave waits for it
	defer r.in.ending.Unlock()
	if t.take(func(o *ready) bool { return o == r }) != nil {
		r.end()
	}
}

// shorten ends the tasks that are too many.
func (t *readyTasks) shorten() {
	t.mu.Lock()
	old := slices.Clone(t.tasks[:max(len(t.tasks)-maxReady, 0)])
	t.mu.Unlock()
	for _, r := range old {
		t.drop(r)
	}
}

// close ends all tasks.
func (t *readyTasks) close() {
	t.mu.Lock()
	t.closed = true
	old := t.tasks
	t.tasks = nil
	t.mu.Unlock()
	for _, r := range old {
		r.end()
	}
	t.making.Wait()
}

// leave ends the task of a sandbox that is being closed.
func (t *readyTasks) leave(s *Shared) {
	s.ending.Lock()
	defer s.ending.Unlock()
	if r := t.take(func(o *ready) bool { return o.in == s }); r != nil {
		r.end()
	}
}

func (r *ready) end() {
	<-r.made
	r.timer.Stop()
	r.task.Drop()
	r.in.release(r.root)
}
