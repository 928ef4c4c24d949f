// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/stages"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

var _ executor.Stager = (*Client)(nil)

// Stages implements [executor.Stager]: the stages on the server's machine that commands of this user have
// made through the server, with the flag --stage.
func (c *Client) Stages(ctx context.Context) ([]executor.StageInfo, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	return (&stages.Client{Caller: c.client}).Stages(ctx)
}

// OpenStage implements [executor.Stager]. The workspace is a directory of the server's machine.
func (c *Client) OpenStage(ctx context.Context, workspace, id string) (executor.Stage, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	return (&stages.Client{Caller: c.client}).OpenStage(ctx, workspace, id)
}
