// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Host starts processes on this machine. On Windows only full access can be
// had; every policy that confines is refused with what is missing. The zero
// Host is ready to use.
type Host struct {
	mu     sync.Mutex
	closed bool
}

// Facts is what is known about the machine. There are no user numbers here.
func (h *Host) Facts() *plan.Host {
	return &plan.Host{System: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}
}

// find leaves the rules of PATHEXT to package os/exec.
func find(r *executor.Spec) (string, error) {
	p, err := exec.LookPath(r.Args[0])
	if err != nil {
		return "", hostfacts.StartError(r.Args[0], os.ErrNotExist)
	}
	return p, nil
}

// Plan plans the launch of a request, or says what is missing for its policy.
func (h *Host) Plan(r *executor.Spec) (*plan.Plan, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	pr := &plan.Request{Spec: r}
	if r.Policy.Mode() == sandbox.Managed {
		// What a policy is refused for does not depend on the program.
		res, err := r.Policy.Resolve()
		if err != nil {
			return nil, err
		}
		pr.Root = res.Root
		for _, p := range res.Paths {
			pr.Rules = append(pr.Rules, plan.Rule{Spot: plan.Spot{Path: p.Path}, Level: p.Level})
		}
		for _, g := range res.Globs {
			pr.Patterns = append(pr.Patterns, plan.Pattern{Glob: g})
		}
		return plan.Make(h.Facts(), pr)
	}
	pr, err := request(r)
	if err != nil {
		return nil, err
	}
	return plan.Make(h.Facts(), pr)
}

// Start starts a command in a job of its own, or refuses.
func (h *Host) Start(ctx context.Context, r *executor.Spec, stdin, stdout, stderr *os.File) (Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	p, err := h.Plan(r)
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, r); err != nil {
		return nil, err
	}
	// The group keeps the console's Ctrl-C from the command, and is what a
	// Ctrl-Break of ours is for. Suspended, it can start no child before it is
	// in the job.
	cmd := &exec.Cmd{
		Path: p.Exec.Path, Args: p.Exec.Args, Env: p.Exec.Env, Dir: p.Exec.Dir, Stdin: stdin, Stdout: stdout, Stderr: stderr,
		SysProcAttr: &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED},
	}
	return startInJob(r, cmd, executor.Sandbox{Level: p.Level, Mechanism: p.Mechanism, Weaker: p.Weaker, Script: p.Exec.String()})
}

// Close refuses further starts.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return nil
}
