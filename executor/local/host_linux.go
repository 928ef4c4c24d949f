// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
)

type (
	host  = linux.Host
	child = linux.Child
)

// refuse refuses what only Linux supports: here, nothing.
func refuse(*executor.Spec) error { return nil }
