// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package explain

import (
	"context"
	"runtime"

	"github.com/sallyport-dev/sallyport/internal/linux/plan"
)

type doctor struct{}

func (*doctor) close() {}

func (*doctor) probes() []probe {
	return []probe{{"whole sandbox", true,
		func(context.Context) (string, error) { return planned(&plan.Host{System: runtime.GOOS}) }}}
}
