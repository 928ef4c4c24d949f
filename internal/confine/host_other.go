// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package confine

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/plan"
)

// A Host starts processes on this machine. On this system only full access can
// be had; every other policy is refused. The zero Host is ready to use.
type Host struct {
	mu     sync.Mutex
	closed bool
}

// Facts is what is known about the machine.
func (h *Host) Facts() *plan.Host {
	return &plan.Host{System: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}
}

// Start starts a command with full access, or refuses.
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
	if err := check(r); err != nil {
		return nil, err
	}
	pr, err := request(r)
	if err != nil {
		return nil, err
	}
	p, err := plan.Make(h.Facts(), pr)
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, r); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: p.Exec.Path, Args: p.Exec.Args, Env: p.Exec.Env, Dir: p.Exec.Dir, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	return startGroup(r, cmd, executor.Sandbox{Level: p.Level, Mechanism: p.Mechanism, Weaker: p.Weaker, Script: p.Exec.String()})
}

// Close refuses further starts.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return nil
}
