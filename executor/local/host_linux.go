// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
)

type (
	host  = linux.Host
	child = linux.Child
	// An opened is a shared sandbox.
	opened = linux.Shared
)

func open(ctx context.Context, h *host, spec *executor.SharedSpec) (*opened, error) {
	return h.Open(ctx, spec)
}

func usage(in *opened) executor.Usage { return in.Usage() }

// members returns the process tree of a command.
func members(c *child) []executor.SharedProcess { return c.Members() }

// refuse refuses what only Linux supports: here, nothing.
func refuse(*executor.Spec) error { return nil }
