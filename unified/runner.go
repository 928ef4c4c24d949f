// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

// runnerHost is a Runner as the tools see it.
type runnerHost struct{ runner *sallyport.Runner }

func (h runnerHost) most() int { return DefaultMaxProcesses }

func (h runnerHost) start(ctx context.Context, c *sallyport.Cmd, stdin Stdin) (process, error) {
	return nil, ErrUnavailable
}
