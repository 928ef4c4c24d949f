// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/stages"
)

var _ executor.Stager = (*Executor)(nil)

// Stages implements [executor.Stager]: the stages lie on the server's machine, and are those that clients
// with the same credential have made. A server without any is an *Error of ClassUnsupported.
func (e *Executor) Stages(ctx context.Context) ([]executor.StageInfo, error) {
	return (&stages.Client{Caller: stageCaller{e}}).Stages(ctx)
}

// OpenStage implements [executor.Stager]. A stage can be used until Close.
func (e *Executor) OpenStage(ctx context.Context, workspace, id string) (executor.Stage, error) {
	return (&stages.Client{Caller: stageCaller{e}}).OpenStage(ctx, workspace, id)
}

// A stageCaller calls the server that an Executor is connected with at that moment.
type stageCaller struct{ of *Executor }

// Call implements [wire.Caller].
func (c stageCaller) Call(ctx context.Context, method string, params, result any) error {
	return c.perform(ctx, method, params, result, false)
}

// Repeat implements [wire.Caller].
func (c stageCaller) Repeat(ctx context.Context, method string, params, result any) error {
	return c.perform(ctx, method, params, result, true)
}

func (c stageCaller) perform(ctx context.Context, method string, params, result any, again bool) error {
	client, err := c.of.connect(ctx)
	if err != nil {
		return err
	}
	if env := client.Server().Environment; env == nil || !env.Capabilities.Stages {
		return refuse("stages", "run sallyport stages on the server's machine")
	}
	call := client.Call
	if again {
		call = client.Repeat
	}
	return call(ctx, method, params, result)
}
