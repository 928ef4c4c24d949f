// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"

	"github.com/sallyport-dev/sallyport/executor"
)

// Stages implements [executor.Stager]: Linux has stages, and other systems none.
func (e *Executor) Stages(ctx context.Context) ([]executor.StageInfo, error) {
	ctx, done, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return stages(ctx, &e.host)
}

// OpenStage implements [executor.Stager].
func (e *Executor) OpenStage(ctx context.Context, workspace, id string) (executor.Stage, error) {
	ctx, done, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return openStage(ctx, &e.host, workspace, id)
}

var _ executor.Stager = (*Executor)(nil)
