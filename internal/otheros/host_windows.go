// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package otheros

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Host starts commands on this machine. The zero Host is ready to use; its methods may be
// called from several goroutines at once.
type Host struct{ closed atomic.Bool }

var errClosed = errors.New("the executor of this machine is closed")

// Facts returns what is known about the machine. There are no user numbers here.
func (*Host) Facts() *plan.Host {
	return &plan.Host{System: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}
}

// Plan plans a command, or returns what is missing for its policy.
func (h *Host) Plan(spec *executor.Spec) (*plan.Plan, error) {
	r := &plan.Request{Spec: spec, Env: spec.Env}
	if spec.Policy.Mode() == sandbox.Managed {
		// The refusal of a policy does not depend on the program.
		res, err := spec.Policy.Resolve()
		if err != nil {
			return nil, err
		}
		r.Root = res.Root
		for _, p := range res.Paths {
			r.Rules = append(r.Rules, plan.Rule{Spot: plan.Spot{Path: p.Path}, Level: p.Level})
		}
		for _, g := range res.Globs {
			r.Patterns = append(r.Patterns, plan.Pattern{Glob: g})
		}
		return plan.Make(h.Facts(), r)
	}
	var err error
	if r.Program, err = exec.LookPath(spec.Args[0]); err != nil { // it knows the rules of PATHEXT
		return nil, hostfacts.StartError(spec.Args[0], os.ErrNotExist)
	}
	return plan.Make(h.Facts(), r)
}

// Start starts a command in a job of its own, or refuses. The three descriptors become the
// command's own and stay the caller's to close.
func (h *Host) Start(ctx context.Context, spec *executor.Spec, stdio [3]*os.File) (*Job, error) {
	if h.closed.Load() {
		return nil, errClosed
	}
	p, err := h.Plan(spec)
	if err != nil {
		return nil, err
	}
	if err := process.WaitReady(ctx, spec); err != nil {
		return nil, err
	}
	// The group keeps the console's Ctrl-C away from the command, and is what a Ctrl-Break of
	// ours is for. Suspended, the command can start no child before it is in the job.
	cmd := &exec.Cmd{
		Path: p.Exec.Path, Args: p.Exec.Args, Env: p.Exec.Env, Dir: p.Exec.Dir, Stdin: stdio[0],
		Stdout: stdio[1], Stderr: stdio[2],
		SysProcAttr: &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED},
	}
	return startInJob(spec, cmd, p.Sandbox(spec))
}

// Close refuses further starts.
func (h *Host) Close() error {
	h.closed.Store(true)
	return nil
}
