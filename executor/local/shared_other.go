// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package local

import (
	"context"
	"os"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An opened is a shared sandbox, of which this system has none.
type opened struct{}

// share does nothing: starts have nothing in common.
func share(_, _ *host) {}

func open(context.Context, *host, *executor.SharedSpec) (*opened, error) {
	return nil, &sandbox.UnsupportedError{Need: "a shared sandbox", Have: "only Linux has them",
		Hint: "run each command in a sandbox of its own"}
}

func stages(context.Context, *host) ([]executor.StageInfo, error) { return nil, nil }

func openStage(context.Context, *host, string, string) (executor.Stage, error) {
	return nil, &executor.StageError{Why: "only Linux has stages", Fix: "run the command there",
		Err: executor.ErrNoStage}
}

func (*opened) Start(context.Context, *executor.Spec, [3]*os.File) (*child, error) {
	return nil, executor.ErrSharedEnded
}

func (*opened) Kill() {}

func (*opened) Done() <-chan struct{} { return nil }

func (*opened) Close() error { return nil }

func usage(*opened) executor.Usage { return executor.Usage{} }

func members(*child) []executor.SharedProcess { return nil }
