// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"

	"github.com/sallyport-dev/sallyport/executor"
)

// WaitReady blocks until a command may start, or returns the cause of the end of ctx.
func WaitReady(ctx context.Context, spec *executor.Spec) error {
	if spec.Ready == nil {
		return nil
	}
	select {
	case <-spec.Ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
