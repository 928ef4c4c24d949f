// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// headPatience is how long a task waits with its head start for a command that may come
// or not: far longer than a plan takes, or listening for the signals of a terminal.
const headPatience = 50 * time.Millisecond

// threadsLast is set by ThreadsLast.
var threadsLast atomic.Bool

// ThreadsLast says that no goroutine of this program ends while it is locked to its
// thread, so that every thread lasts and may launch (see [launch.Launcher.AnyThread]).
// Only a program that knows all its goroutines can say so, and it says so before its
// first Host begins.
func ThreadsLast() { threadsLast.Store(true) }

// Begin begins to make, beside what its caller does, what the first launch under a
// policy will need: the launching thread and, for a sandbox, its namespaces, what is
// known about the machine, the private /tmp and the journal of guarded names. It returns
// at once, and only the first call does something; Start is one. A Start with that
// policy should follow soon: a task that waits for it is given up otherwise. What fails
// here fails again where it is needed, and is told there.
func (h *Host) Begin(policy sandbox.Policy) {
	h.beginOnce.Do(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.closed {
			return
		}
		h.launcher.AnyThread = threadsLast.Load()
		managed := policy.Mode() == sandbox.Managed
		early := make(chan *launch.Head, 1)
		if managed {
			h.early = early
		}
		h.beginning.Go(func() {
			if !managed {
				_ = h.launcher.Prepare()
				return
			}
			head, clone := h.launcher.Head(plan.Namespaces(policy.Network()), plan.First(h.Facts()))
			early <- head
			time.AfterFunc(headPatience, h.dropEarly) // the command may have been refused
			if clone != nil {
				clone()
			}
		})
		if managed {
			h.beginning.Go(func() {
				if keeper, _, err := h.guard(); err == nil {
					_ = keeper.Prepare()
				}
			})
		}
	})
}

// A headStart is a head start that may still be on its way. Nil is none.
type headStart struct {
	coming <-chan *launch.Head // nil when it has come
	head   *launch.Head
}

// take waits until the head start is there and returns it, or nil. It may be called
// again, by the same goroutine.
func (s *headStart) take() *launch.Head {
	if s == nil {
		return nil
	}
	if s.coming != nil {
		s.head, s.coming = <-s.coming, nil
	}
	return s.head
}

// drop ends one that was not used.
func (s *headStart) drop() { s.take().Drop() }

// headStart begins to make the namespaces that a request will most likely need; nil
// where nothing is gained by it.
func (h *Host) headStart(r *executor.Spec, lacks map[string]*sandbox.UnsupportedError) *headStart {
	h.mu.Lock()
	early := h.early
	h.early = nil
	h.mu.Unlock()
	if early != nil {
		return &headStart{coming: early} // it will be there before the plan is
	}
	if r.Policy.Mode() != sandbox.Managed || r.Resources.Memory > 0 || r.Resources.CPUs > 0 || r.Resources.PIDs > 0 {
		return nil // the first task may have to begin in a control group
	}
	if level, err := h.first(r, lacks); err != nil || level != plan.LevelNative {
		return nil
	}
	return &headStart{head: h.launcher.HeadStart(plan.Namespaces(r.Policy.Network()), plan.First(h.Facts()))}
}

// waitWith waits until the command may begin. A task that has a head start does not
// wait with it for long: it occupies a thread, and the kernel counts it as load.
func (h *Host) waitWith(ctx context.Context, start *headStart, r *executor.Spec) error {
	select {
	case <-r.Ready:
		return nil
	default:
	}
	head := start.take()
	if r.Ready == nil || head == nil {
		return wait(ctx, r)
	}
	timer := time.AfterFunc(headPatience, head.Drop)
	defer timer.Stop()
	return wait(ctx, r)
}

// dropEarly ends a head start that no request has taken.
func (h *Host) dropEarly() {
	h.mu.Lock()
	early := h.early
	h.early = nil
	h.mu.Unlock()
	if early != nil {
		(<-early).Drop()
	}
}

// end is the end of a Host that was closed. What a command could still use goes when
// the kernel has killed everything; where all commands are over, nobody waits for
// their namespaces to be taken down.
func (h *Host) end(tmp *state.Tmp, keeper *guard.Keeper) error {
	launcher := make(chan error, 1)
	if h.alive.Load() > 0 {
		launcher <- h.endLauncher()
	} else {
		go func() { launcher <- h.endLauncher() }()
	}
	// Both wait for the disk.
	removed := make(chan error, 1)
	go func() {
		if tmp == nil {
			removed <- nil
		} else if err := tmp.Remove(); err != nil {
			removed <- fmt.Errorf("remove the private /tmp: %w", err)
		} else {
			removed <- nil
		}
	}()
	var err error
	if keeper != nil {
		err = keeper.Close()
	}
	return errors.Join(err, <-removed, <-launcher)
}

// endLauncher ends whatever still runs, and then gives the control groups back, which
// are empty only by then.
func (h *Host) endLauncher() error { return errors.Join(h.launcher.Close(), h.groups.close()) }
