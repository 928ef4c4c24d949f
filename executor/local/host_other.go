// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package local

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/run/process"
)

type child = process.Group

// A host starts commands on a system where only full access is available. Every other policy
// is refused.
type host struct{ closed atomic.Bool }

func (h *host) Start(ctx context.Context, spec *executor.Spec, stdio [3]*os.File) (*process.Group, error) {
	if h.closed.Load() {
		return nil, ErrClosed
	}
	program, err := hostfacts.Lookup(spec.Args[0], spec.Dir, spec.Env)
	if err != nil {
		return nil, err
	}
	p, err := plan.Make(&plan.Host{System: runtime.GOOS, Arch: runtime.GOARCH},
		&plan.Request{Spec: spec, Program: program, Env: spec.Env})
	if err != nil {
		return nil, err
	}
	if err := process.WaitReady(ctx, spec); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: p.Exec.Path, Args: p.Exec.Args, Env: p.Exec.Env, Dir: p.Exec.Dir, Stdin: stdio[0],
		Stdout: stdio[1], Stderr: stdio[2]}
	g, err := process.StartGroup(cmd, p.Sandbox(spec))
	if err != nil {
		return nil, hostfacts.StartError(spec.Args[0], err)
	}
	return g, nil
}

func (h *host) Close() error {
	h.closed.Store(true)
	return nil
}
