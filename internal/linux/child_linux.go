// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/limits"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/run/process"
)

// A Child is a started command and its process tree. It does not keep its plan, which is
// large, and it may live for days.
type Child struct {
	held
	host     *Host
	proc     *launch.Process
	monitor  *BubblewrapMonitor // nil at other levels
	terminal *os.File           // the master end; nil without one
	sandbox  executor.Sandbox
	ownPIDs  bool    // it has a process namespace that the reaper is in
	shared   *Shared // nil for a sandbox of its own

	ended   atomic.Bool                       // the command itself has ended
	stopped atomic.Bool                       // its whole tree was signaled
	total   atomic.Pointer[executor.Enforced] // the limit of its shared sandbox that was exceeded
	cut     atomic.Bool                       // it was killed because its shared sandbox has ended

	mu       sync.Mutex     // guards what follows
	closing  bool           // Close has begun
	watching sync.WaitGroup // calls of whileOpen; added to while not closing
	broken   error          // why a wall is gone
	outgrown error          // why the tree could not be killed
}

func (h *Host) newChild(p *plan.Plan, spec *executor.Spec, proc *launch.Process,
	monitor *BubblewrapMonitor) *Child {
	c := &Child{
		host: h, proc: proc, monitor: monitor,
		sandbox: p.Sandbox(spec), ownPIDs: p.Script.Namespaces&launch.NewPID != 0,
	}
	if monitor != nil {
		monitor.Follow(proc)
	}
	h.children.Add(1)
	return c
}

// PID returns the process at the root of the tree, as this machine sees it.
func (c *Child) PID() int { return c.proc.PID() }

// Processes returns the PIDs of the tree below the reaper.
func (c *Child) Processes() []int {
	var out []int
	c.proc.WhileThere(func() { out = process.PIDsBelow(c.PID()) })
	return out
}

// Load returns the processor time that the tree has used so far, and its memory in bytes; false after
// its end.
func (c *Child) Load() (cpu time.Duration, memory int64, ok bool) {
	ok = c.proc.WhileThere(func() {
		cpu, memory = limits.Load(c.PID(), process.PIDsBelow(c.PID()))
	})
	return cpu, memory, ok
}

// Members returns the tree below the reaper, for a list of what runs in a shared sandbox.
func (c *Child) Members() (out []executor.SharedProcess) {
	c.proc.WhileThere(func() {
		for _, m := range process.Below(c.PID()) {
			out = append(out, executor.SharedProcess{PID: m.PID, Parent: m.Parent, Name: m.Name,
				Command: m.Command()})
		}
	})
	return out
}

// Terminal returns the master end of the command's terminal, which does not block and is
// the caller's to close; nil without one.
func (c *Child) Terminal() *os.File { return c.terminal }

// Sandbox returns what was enforced.
func (c *Child) Sandbox() executor.Sandbox {
	s := c.sandbox
	s.Warnings, s.Hidden, s.Observed = c.names.Warnings(), c.names.Hidden(), c.observer != nil
	s.Replaced = c.names.Replaced()
	s.Published, s.Shared = c.published.Ports(), c.shared != nil
	return s
}

// Wait blocks until the command itself has ended. A negative code means that its end is not
// known, because the tree was killed before. Call it once.
func (c *Child) Wait() (code, signal int, err error) {
	st, err := c.proc.Wait()
	c.ended.Store(true)
	switch {
	case errors.Is(err, launch.ErrLost):
		if c.shared != nil && c.shared.parts.PIDs {
			// Its processes are children of the holder now, among those of others.
			c.cut.Store(true)
			c.shared.kill()
		}
		return -1, 0, nil
	case err != nil:
		return -1, 0, err
	case st.Signaled():
		return 128 + int(st.Signal()), int(st.Signal()), nil
	case c.monitor != nil:
		return c.monitor.Exit(st.ExitStatus())
	}
	return st.ExitStatus(), 0, nil
}

// WaitAll blocks until nothing of the tree is left.
func (c *Child) WaitAll() error {
	c.mu.Lock()
	err := c.outgrown
	c.mu.Unlock()
	if err == nil { // else it may never end
		err = c.proc.WaitAll()
	}
	if c.monitor != nil {
		c.monitor.Wait()
	}
	return err
}

// Signal sends a signal to the command's process group or, with tree, to everything below
// the reaper.
func (c *Child) Signal(sig syscall.Signal, tree bool) error {
	if c.monitor != nil {
		if inside, err := c.monitor.Signal(sig, tree); inside {
			return err
		}
	}
	to := launch.ToGroup
	if tree {
		to = launch.ToTree
		c.countStop()
	}
	err := c.proc.Signal(sig, to)
	if tree && !c.ownPIDs {
		// No process namespace: processes that left the group are found by descent.
		c.proc.WhileThere(func() { process.SignalBelow(c.PID(), sig) })
	}
	return err
}

// cutOff kills the tree because the shared sandbox has ended.
func (c *Child) cutOff() {
	c.whileOpen(func() {
		if !c.ended.Load() {
			c.cut.Store(true)
		}
		_ = c.Kill() // WaitAll returns what went wrong
	})
}

// countStop tells the host that this command was stopped, once.
func (c *Child) countStop() {
	if c.stopped.CompareAndSwap(false, true) {
		c.host.stopped.Add(1)
	}
}

// Kill kills the whole tree. Without a process namespace that takes rounds, because a
// process may start others meanwhile.
func (c *Child) Kill() error {
	if !c.ended.Load() {
		c.countStop() // without a grace this is the first that is done
	}
	if c.proc.Empty(0) {
		return nil
	}
	// While the reaper is alive it reports how the command ended and what it used. On a busy machine
	// that takes a while, and a process in the middle of a slow write may take longer to end.
	const patience = time.Second
	err := c.proc.KillTree(patience)
	if c.ownPIDs {
		return err
	}
	return errors.Join(c.killBelow(), err)
}

// killBelow kills what is below the reaper in rounds.
func (c *Child) killBelow() error {
	err := process.KillBelow(c.proc, c.ended.Load)
	if err != nil {
		c.host.outgrown.Store(true)
		c.mu.Lock()
		c.outgrown = err
		c.mu.Unlock()
	}
	return err
}

// Survivors returns the processes of the tree that are alive when the command has ended.
func (c *Child) Survivors() []executor.Survivor {
	if c.monitor != nil {
		return c.monitor.Survivors()
	}
	// The reaper knows whether there are any, and usually there are none.
	const patience = 2 * time.Millisecond
	if c.proc.Empty(patience) {
		return nil
	}
	var out []executor.Survivor
	c.proc.WhileThere(func() { out = process.SurvivorsBelow(c.PID()) })
	return out
}
