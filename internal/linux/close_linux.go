// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
)

// hold gives the child what is held for it until its end, and kills its tree when a wall
// breaks or a limit is exceeded.
func (c *Child) hold(held held) {
	c.held = held
	c.names.Started()
	c.names.OnBroken(func(cause error) {
		c.whileOpen(func() {
			c.mu.Lock()
			c.broken = cause
			c.mu.Unlock()
			_ = c.Kill() // WaitAll returns what went wrong
		})
	})
	c.observer.onFailed(func() {
		c.whileOpen(func() { _ = c.Kill() }) // Close returns why
	})
	c.bounds.Watch(c.Processes, c.overLimit)
}

// overLimit kills the tree because it has exceeded a limit; its reaper tells the end.
func (c *Child) overLimit() {
	err := c.Signal(syscall.SIGKILL, true)
	switch { // WaitAll returns what went wrong
	case err != nil: // the command may have filled the queue of signals that the reaper is asked by
		_ = c.Kill()
	case !c.ownPIDs: // else the kernel kills all at once
		_ = c.killBelow()
	}
}

// whileOpen calls f, which Close waits for, or does nothing when Close has begun.
func (c *Child) whileOpen(f func()) {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return
	}
	c.watching.Add(1)
	c.mu.Unlock()
	defer c.watching.Done()
	f()
}

// Close releases what the child holds and adds to exit what is known now. The tree must have
// ended. Names that must not have been created are moved to quarantine.
func (c *Child) Close(exit *executor.Exit) error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.watching.Wait()
	exit.Sandbox, exit.SurvivorsBy = c.Sandbox(), executor.BySubreaper
	if c.ownPIDs || c.monitor != nil {
		exit.SurvivorsBy = executor.ByNamespace
	}
	c.published.Close()
	c.member.Leave()
	c.leavePeers()
	refused := c.network.Close()
	var err, err2 error
	exit.Quarantined, err = c.names.Finish()
	report := c.observer.close() // it may hold sockets in the layers of the caches
	c.services.close()
	c.caches.Release()
	exit.Denials, exit.DenialsOmitted = report.Denials, report.Omitted
	exit.HardLinks, exit.HardLinksOmitted = report.HardLinks, report.HardLinksOmitted
	exit.OwnershipIgnored = report.OwnershipIgnored
	if c.stage == nil { // else nothing of the host's is new, and the changes say what runs later
		exit.New = c.names.New(c.observer.made(report))
	} else if exit.Stage, err2 = c.stage.Finish(); err2 != nil {
		exit.Sandbox.Warnings = append(slices.Clone(exit.Sandbox.Warnings), err2.Error())
	}
	if c.observer == nil {
		exit.Denials = c.names.Denials() // probable ones; the observer knows better
	}
	exit.NetworkDenials, exit.NetworkHosts = refused.Network, refused.Hosts
	exit.NetworkFailures = refused.Failed
	exit.Denials, exit.DenialsOmitted = append(exit.Denials, refused.Denials...),
		exit.DenialsOmitted+refused.Omitted
	switch exit.Broken = c.broken; {
	case exit.Broken != nil:
	case c.cut.Load() && (exit.Code < 0 || exit.Signal == int(syscall.SIGKILL)):
		exit.Broken = executor.ErrSharedEnded
	case report.Err != nil:
		exit.Broken = fmt.Errorf("the observer of system calls failed: %w", report.Err)
	default:
		exit.Broken = err
	}
	if c.bounds != nil {
		exit.Limits, exit.Limit, exit.Usage = c.bounds.Finish(c.proc.Usage())
		c.proc.OnCollected(c.bounds.Release)
		if limit := c.total.Load(); limit != nil && exit.Limit == "" &&
			(exit.Code < 0 || exit.Signal == int(syscall.SIGKILL)) {
			exit.Limit, exit.Limits = limit.Limit, append(exit.Limits, *limit)
		}
		applyLimit(exit)
	}
	c.notice.Withdraw()
	if c.shared != nil {
		c.shared.remove(c, exit.Usage)
	}
	if c.monitor != nil {
		c.monitor.Close()
	}
	defer c.host.children.Add(-1)
	return c.proc.Close()
}

// applyLimit decides whether a limit ended the command. A command that was denied a process and
// succeeded all the same was not ended by that. A tree that the kernel killed as a whole, with
// its reaper, was ended by SIGKILL.
func applyLimit(exit *executor.Exit) {
	switch {
	case exit.Limit == executor.LimitPIDs && exit.Code == 0:
		exit.Limit = ""
	case exit.Limit != "" && exit.Code < 0:
		exit.Code, exit.Signal = 128+int(syscall.SIGKILL), int(syscall.SIGKILL)
	}
}
