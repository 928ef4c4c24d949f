// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// preforkPatience is how long a preforked task waits for a command that is held back:
// far longer than a plan takes, or listening for signals.
const preforkPatience = 50 * time.Millisecond

// prefork begins to make the namespaces that a request will most likely need, while it
// is planned. It returns nil where that gains nothing.
func (h *Host) prefork(r *executor.Spec, lacks map[string]*sandbox.UnsupportedError) *launch.Preforked {
	if r.Policy.Mode() != sandbox.Managed || r.Resources.Memory > 0 || r.Resources.CPUs > 0 || r.Resources.PIDs > 0 {
		return nil // the first task may have to begin in a control group
	}
	if level, err := h.first(r, lacks); err != nil || level != plan.LevelNative {
		return nil
	}
	return h.launcher.Prefork(plan.Namespaces(r.Policy.Network()), plan.First(h.Facts()))
}

// waitReady waits until the command may begin. A preforked task does not wait for long:
// it occupies a thread, and the kernel counts it as load.
func waitReady(ctx context.Context, pre *launch.Preforked, r *executor.Spec) error {
	if r.Ready != nil && pre != nil {
		defer time.AfterFunc(preforkPatience, pre.Drop).Stop()
	}
	return wait(ctx, r)
}
