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
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Request is one command.
type Request struct {
	Args []string // never empty
	Arg0 string   // what the program sees as its name; empty means Args[0]
	Dir  string   // absolute
	Env  []string // the whole environment

	Policy sandbox.Policy // bound
	Allow  []string       // openings of the system call filter
	Level  string         // least level: "", "native", "bwrap", "landlock", "seatbelt"
	Tmp    string         // "" or "private", "host", or an absolute path

	// NoCaches leaves the caches of toolchains as the policy has them. Otherwise
	// a command gets overlays over those that belong to its workspace.
	NoCaches bool

	// NoObserver starts the command without a supervisor of its system calls.
	NoObserver bool

	// TTY, when it is not nil, gives the command a terminal of its own.
	TTY *TTY

	// Limits bounds the tree; the one of output is not looked at.
	Limits executor.Limits

	// Ready, when it is not nil, holds the command back until it is closed.
	Ready <-chan struct{}
}

// A TTY is a terminal in place of the standard descriptors.
type TTY struct {
	Cols, Rows uint16
	Stderr     bool // standard error stays what it is
}

// wait returns when the command may begin.
func (r *Request) wait(ctx context.Context) error {
	if r.Ready == nil {
		return nil
	}
	select {
	case <-r.Ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

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

// A DirError is a working directory that cannot be used.
type DirError struct {
	Dir string
	Err error
}

func (e *DirError) Error() string {
	switch {
	case errors.Is(e.Err, fs.ErrNotExist):
		return fmt.Sprintf("the working directory %s does not exist", e.Dir)
	case errors.Is(e.Err, syscall.ENOTDIR):
		return fmt.Sprintf("the working directory %s is not a folder", e.Dir)
	case errors.Is(e.Err, fs.ErrPermission):
		return fmt.Sprintf("the working directory %s cannot be entered: permission denied", e.Dir)
	}
	return fmt.Sprintf("the working directory %s cannot be used: %v", e.Dir, e.Err)
}

// Unwrap gives the cause.
func (e *DirError) Unwrap() error { return e.Err }

// A RootError is a place of the policy that cannot be used.
type RootError struct {
	Path string
	Why  string // the rest of a sentence that begins with the path
	Mend string
}

func (e *RootError) Error() string {
	s := fmt.Sprintf("%s %s", e.Path, e.Why)
	if e.Mend != "" {
		s += "; " + e.Mend
	}
	return s
}

// A Check is one line of the doctor's report.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Mend   string `json:"mend"`
	Needed bool   `json:"needed"` // the default policy needs it
}

// A LevelCheck is what the doctor found out about one level.
type LevelCheck struct {
	Level     string `json:"level"`
	Available bool   `json:"available"`
	Why       string `json:"why,omitempty"`  // why it is not available
	Mend      string `json:"mend,omitempty"` // what would help
	// The walls of the table that hold at this level on this machine, those that
	// are missing, and those for want of which policies are refused. Never nil.
	Holds   []string    `json:"holds"`
	Lacks   []plan.Lack `json:"lacks"`
	Refuses []plan.Lack `json:"refuses"`
}

// errClosed is returned by a Host that was closed.
var errClosed = errors.New("confine: the host is closed")
