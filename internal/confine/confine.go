// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package confine starts processes under a sandbox policy on this machine.
//
// A [Host] knows the machine: it probes it once, keeps the launcher's threads
// and the private folder that commands see as /tmp. [Host.Start] looks at the
// files that a policy names (what is there, what is a symbolic link, which
// inode it is), has package plan make a plan of it, and performs the plan's
// script. A path that changes between the look and the launch stops the launch.
//
// The package decides nothing: what may be touched is the policy's, how it is
// enforced the plan's. It reads no output. What it cannot enforce it refuses
// with a *sandbox.UnsupportedError; it never runs a command with less.
package confine

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An Aftermath is what was seen of the walls when everything was over. The zero
// Aftermath means that nothing happened to them.
type Aftermath struct {
	Quarantined []executor.Quarantined
	Denials     []sandbox.Denial // what the command was kept from, as far as that was seen
	Omitted     int              // refused accesses that are not among the Denials, for want of room
	Broken      error            // what took a wall away meanwhile; nil when they stood

	Limits []executor.Enforced
	Limit  string // the limit that ended the tree, or ""
	Usage  executor.Usage
}

// A Child is a started command and its tree.
type Child interface {
	// PID is the process at the root of the tree, as this machine sees it.
	PID() int
	// Wait blocks until the command itself has ended. The error means that its
	// end is not known, because the tree was killed first. Call it once.
	Wait() (code, signal int, err error)
	// WaitAll blocks until nothing of the tree is left.
	WaitAll() error
	// Signal sends a signal to the command's process group or, with tree, to
	// everything below the root.
	Signal(sig syscall.Signal, tree bool) error
	// Kill ends the whole tree.
	Kill() error
	// Survivors are the processes of the tree that are alive.
	Survivors() []executor.Survivor
	// EndedBy says by what means they are found and ended (executor.ByNamespace
	// and the like).
	EndedBy() string
	// Close releases what the child holds, and looks once more at what the
	// command must not have made. The tree must have ended.
	Close() error
	// Aftermath is what that look found. It is there after Close.
	Aftermath() Aftermath
	// Sandbox says what was enforced.
	Sandbox() executor.Sandbox
	// Terminal is the master end of the terminal that Request.TTY asked for, which
	// does not block and is the caller's to close; nil without one.
	Terminal() *os.File
	// Processes are those of the tree, the command and what it started, by their
	// numbers here.
	Processes() []int
}

// wait returns when the command may begin.
func wait(ctx context.Context, spec *executor.Spec) error {
	if spec.Ready == nil {
		return nil
	}
	select {
	case <-spec.Ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A Check is one line of the doctor's report.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix"`
	Needed bool   `json:"needed"` // the default policy needs it
}

// A LevelCheck is what the doctor found out about one level.
type LevelCheck struct {
	Level     string `json:"level"`
	Available bool   `json:"available"`
	Why       string `json:"why,omitempty"` // why it is not available
	Fix       string `json:"fix,omitempty"` // what would help
	// The walls of the table that hold at this level on this machine, those that
	// are missing, and those for want of which policies are refused. Never nil.
	Holds   []string    `json:"holds"`
	Lacks   []plan.Lack `json:"lacks"`
	Refuses []plan.Lack `json:"refuses"`
}

// errClosed is returned by a Host that was closed.
var errClosed = errors.New("confine: the host is closed")
