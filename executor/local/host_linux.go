// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/sandbox"
)

type (
	host  = linux.Host
	child = linux.Child
	// An opened is a shared sandbox.
	opened = linux.Shared
)

func share(h, with *host) { h.Share(with) }

func open(ctx context.Context, h *host, spec *executor.SharedSpec) (*opened, error) {
	return h.Open(ctx, spec)
}

// Opens plans a command and starts nothing. It returns what says why a path is closed to an access in it
// (nil: it is not) and what becomes of files that are written, or the error of [Executor.Start].
func (e *Executor) Opens(ctx context.Context, spec *executor.Spec) (func(sandbox.Access) error,
	executor.Writing, error) {
	_, done, err := e.begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	return e.host.Opens(spec)
}

func stages(ctx context.Context, h *host) ([]executor.StageInfo, error) { return h.Stages(ctx) }

func openStage(ctx context.Context, h *host, workspace, id string) (executor.Stage, error) {
	return h.OpenStage(ctx, workspace, id)
}

func usage(in *opened) executor.Usage { return in.Usage() }

// members returns the process tree of a command.
func members(c *child) []executor.SharedProcess { return c.Members() }

// refuse refuses what only Linux supports: here, nothing.
func refuse(*executor.Spec) error { return nil }
