// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/names/guard"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
)

// maxIdle is how many launchers without a process wait for the next Host.
const maxIdle = 4

// A pool is what Hosts of one process share: nothing in it depends on a policy, or on what an earlier
// command did. What a Host learns about the machine is its own, so that a change counts for the next one.
type pool struct {
	mu     sync.Mutex
	closed bool
	kept   *kept              // nil before the first use
	idle   []*launch.Launcher // without processes

	// These are made of their keys alone.
	filters  map[filterKey]launch.Filter
	refusals map[filterKey]*seccomp.Refusals // of the filters
}

// kept is what Hosts remember of what is on disk.
type kept struct {
	state     string // the state directory
	protector *guard.Protector
	scans     *protect.Scans
	mounts    hostfacts.Mounts
}

func newKept(state string) *kept {
	return &kept{state: state, protector: &guard.Protector{State: state},
		scans: &protect.Scans{State: state}}
}

func (k *kept) close() error {
	err := k.protector.Close()
	k.mounts.Close()
	return err
}

// keep returns what is remembered with a state directory, or false where that is another one meanwhile, and
// after the end.
func (c *pool) keep(state string) (*kept, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil && !c.closed {
		c.kept = newKept(state)
	}
	return c.kept, c.kept != nil && c.kept.state == state
}

// take returns a launcher for one Host.
func (c *pool) take() *launch.Launcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		l := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return l
	}
	return new(launch.Launcher)
}

// give returns a launcher whose processes have all ended.
func (c *pool) give(l *launch.Launcher) error {
	c.mu.Lock()
	if fits := !c.closed && len(c.idle) < maxIdle; fits {
		c.idle = append(c.idle, l)
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	return l.Close()
}

// close frees everything. No other Host uses it any more.
func (c *pool) close() (err error) {
	c.mu.Lock()
	c.closed = true
	k, idle := c.kept, c.idle
	c.kept, c.idle = nil, nil
	c.mu.Unlock()
	for _, l := range idle {
		err = errors.Join(err, l.Close())
	}
	if k != nil {
		err = errors.Join(err, k.close())
	}
	return err
}

// Share has h use what with has, where that does not depend on a command. Each has its own private /tmp, and
// learns about the machine anew. It is called before the first use of h; with is closed after h.
func (h *Host) Share(with *Host) { h.shared = &with.own }

// pool returns what h uses with others, or alone.
func (h *Host) pool() *pool {
	if h.shared != nil {
		return h.shared
	}
	return &h.own
}

// launcher returns the launcher of h.
func (h *Host) launcher() *launch.Launcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.launcherLocked()
}

func (h *Host) launcherLocked() *launch.Launcher {
	if h.taken == nil {
		h.taken = h.pool().take()
	}
	return h.taken
}

// giveBack gives the launcher to the next Host, or ends it with all processes that it started, where one of
// them may be there still.
func (h *Host) giveBack(l *launch.Launcher) error {
	if h.shared != nil && h.children.Load() == 0 && !h.outgrown.Load() {
		return h.shared.give(l)
	}
	return l.Close()
}
